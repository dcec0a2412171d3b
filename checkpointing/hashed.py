"""
Secrets that we hand out, and what is kept of them: the SHA-256 digest and nothing else.

A secret is 256 bits from the system's generator. Nobody finds it by trying, so one round of a plain hash is enough, and a slow one with a
salt, as passwords need, would only make every request slower. Whoever reads the table cannot come in by what they read.
"""

from __future__ import annotations

import hashlib
import secrets

SIZE_BYTES = 32


def new_secret(prefix: str = "") -> str:
    """Return a secret nobody has had: *prefix* and 43 characters that need no quoting in a URL, a header or a shell."""
    return prefix + secrets.token_urlsafe(SIZE_BYTES)


def digest_of(secret: str) -> str:
    """Return what is kept of *secret*, 64 hex digits. Any text has one, also text that no secret of ours is."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
