"""
An identity provider for tests: real keys, published by a server on this machine that counts how often they are fetched.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "counterfoil"
PATIENCE_S = 30
PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey


@cache
def rsa_key(number: int = 0, bits: int = 2048) -> RSAPrivateKey:
    """Return a key, the same one for the same number: it takes a while to make one."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def ec_key() -> EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def published(key_id: str, key: PrivateKey, **more: Any) -> dict[str, Any]:
    """Return the public half as a provider publishes it."""
    if isinstance(key, RSAPrivateKey):
        half, algorithm = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "RS256"
    else:
        half, algorithm = ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "ES256"
    return {**half, "kid": key_id, "use": "sig", "alg": algorithm, **more}


class Server(ThreadingHTTPServer):
    """Ends when its last answer is given, so that no socket of a test outlives it."""

    daemon_threads = False


class Provider:
    """
    A provider with keys of its own.

    Attributes:
        url: Where its keys are.
        issuer: What it calls itself.
        answer: What is published: `keys`, and a body in its place that is none.
        status: What the server answers with.
        fetched: How often the keys were fetched.
        asked, may_answer: Set by the server when it is asked; waited for before it answers.
    """

    def __init__(self, url: str) -> None:
        """Begin with one RSA key, `first`."""
        self.url = url
        self.issuer = "https://id.carrier.example"
        self.keys: dict[str, PrivateKey] = {"first": rsa_key()}
        self.answer: Any = None
        self.status = 200
        self.fetched = 0
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def body(self) -> bytes:
        """Return what is published just now."""
        keys = [published(key_id, key) for key_id, key in self.keys.items()]
        return json.dumps({"keys": keys} if self.answer is None else self.answer).encode()

    def claims(self, **more: Any) -> dict[str, Any]:
        """Return the claims of an adjuster; what is `None` is left out."""
        said = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "exp": int(time.time()) + 300,
            "sub": "ada",
            "roles": ["approver"],
            **more,
        }
        return {claim: value for claim, value in said.items() if value is not None}

    def signed(self, key_id: str = "first", *, key: PrivateKey | None = None, header: Any = None, **more: Any) -> str:
        """Return an assertion, signed with one of the keys or with *key* under its id."""
        with_key = key or self.keys[key_id]
        algorithm = "RS256" if isinstance(with_key, RSAPrivateKey) else "ES256"
        return jwt.encode(self.claims(**more), with_key, algorithm, headers={"kid": key_id, **(header or {})})


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """Serve a provider's keys while inside."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.fetched += 1
            provider.asked.set()
            provider.may_answer.wait(PATIENCE_S)
            body = provider.body()
            self.send_response(provider.status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", provider.url)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as the base has it
            """Say nothing."""

    with Server(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}/keys")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield provider
        finally:
            server.shutdown()
            serving.join()
