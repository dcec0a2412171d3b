"""Signed assertions, of an identity provider whose keys are really fetched and of a reverse proxy: which count, and whom they name."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from checkpointing import Journal
from checkpointing.principals import Person
from service.settings import Settings
from service.who import Doors, KeysUnreachable, NotAuthenticated, Visitor
from service.who.assertions import ByProvider, BySecret
from service.who.claims import ClaimNames
from service.who.keys import APART, DROPPED_AFTER, REFRESHED_AFTER, PublishedKeys
from service.wiring import doors_of
from tests.support.provider import AUDIENCE, PATIENCE_S, Provider, ec_key, identity_provider, published, rsa_key

SECRET = "s3cret-of-the-proxy-" * 2
HEADER = "X-Signed-In-As"


class Passing:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An identity provider at work."""
    with identity_provider() as found:
        yield found


@pytest.fixture
def passing() -> Passing:
    """How time passes for the keys."""
    return Passing()


@pytest.fixture
def doors(journal: Journal, provider: Provider, passing: Passing) -> Doors:
    """Doors that take the provider's assertions as bearer tokens, and the proxy's in a header."""
    keys = PublishedKeys(provider.url, seconds=passing)
    return Doors(
        journal,
        provider=ByProvider(keys, issuer=provider.issuer, audience=AUDIENCE),
        proxy=(HEADER, BySecret(SecretStr(SECRET), audience=AUDIENCE)),
        names=ClaimNames(limit="limit"),
    )


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def refused(doors: Doors, headers: dict[str, str], why: str) -> None:
    with pytest.raises(NotAuthenticated, match=why) as found:
        doors.visitor(headers)
    for value in headers.values():
        for part in value.removeprefix("Bearer ").split("."):
            told = "".join(traceback.format_exception(found.value)) + repr(found.value)
            assert len(part) < 8 or part not in told


def by_proxy(claims: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> dict[str, str]:
    return {HEADER: jwt.encode(claims, secret, algorithm)}


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def test_an_assertion_of_the_provider_names_its_principal(doors: Doors, provider: Provider) -> None:
    text = provider.signed(sub="ada", roles=["approver", "admin"], groups=["motor"], limit=50_000)

    assert doors.visitor(bearer(text)) == Visitor(
        Person("ada", frozenset({"motor"}), 50_000), frozenset({"approver"}), "oidc"
    )


def test_an_elliptic_key_counts_too(doors: Doors, provider: Provider) -> None:
    provider.keys["curve"] = ec_key()

    assert doors.visitor(bearer(provider.signed("curve"))) is not None


def test_tokens_of_ours_count_beside_a_provider(doors: Doors, provider: Provider) -> None:
    _, secret = doors.journal.tokens.add(principal="ada", roles=["operator"], by="root")
    came = doors.visitor(bearer(secret))

    assert came is not None
    assert (came.how, provider.fetched) == ("token", 0)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aud": "another"}, "made out to somebody else"),
        ({"aud": ["another", AUDIENCE + "x"]}, "made out to somebody else"),
        ({"aud": None}, "no exp, no aud or no iss"),
        ({"iss": "https://id.carrier.example/"}, "another issuer"),
        ({"iss": None}, "no exp, no aud or no iss"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "no exp, no aud or no iss"),
        ({"exp": "soon"}, "no signed JSON Web Token"),
        ({"nbf": 2**40}, "not good yet"),
        ({"iat": 2**40}, "not good yet"),
    ],
)
def test_an_assertion_that_is_not_for_us_or_not_for_now_is_refused(
    doors: Doors, provider: Provider, changed: dict[str, Any], why: str
) -> None:
    refused(doors, bearer(provider.signed(**changed)), why)


def test_one_audience_of_several_may_be_ours(doors: Doors, provider: Provider) -> None:
    assert doors.visitor(bearer(provider.signed(aud=["another", AUDIENCE]))) is not None


def test_an_assertion_signed_with_another_key_is_refused(doors: Doors, provider: Provider) -> None:
    refused(doors, bearer(provider.signed("first", key=rsa_key(1))), "signature is wrong")


def test_a_signature_of_another_assertion_does_not_count(doors: Doors, provider: Provider) -> None:
    head, body, signature = provider.signed().split(".")
    widened = encoded(provider.claims(sub="root", roles=["operator"]))

    assert body != widened
    refused(doors, bearer(f"{head}.{widened}.{signature}"), "signature is wrong")
    refused(doors, bearer(f"{head}.{body}."), "signature is wrong")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_an_assertion_that_nobody_signed_is_refused(doors: Doors, provider: Provider, algorithm: str) -> None:
    head = encoded({"alg": algorithm, "typ": "JWT", "kid": "first"})
    for signature in ("", "AAAA"):
        refused(doors, bearer(f"{head}.{encoded(provider.claims())}.{signature}"), "algorithm that does not count")
        refused(doors, {HEADER: f"{head}.{encoded(provider.claims())}.{signature}"}, "algorithm that does not count")


def test_the_public_key_is_no_secret_to_sign_with(doors: Doors, provider: Provider) -> None:
    """Whoever takes the key that everybody can read for a secret of HS256 has signed with nothing."""
    public = provider.keys["first"].public_key()
    for form in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(published("first", provider.keys["first"])).encode(),
    ):
        text = signed_hs256(provider.claims(), form)
        refused(doors, bearer(text), "algorithm that does not count")
        refused(doors, {HEADER: text}, "signature is wrong")


def signed_hs256(claims: dict[str, Any], secret: bytes) -> str:
    """Sign by hand: PyJWT refuses to take a public key for a secret."""
    said = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{encoded(claims)}"
    mac = hmac.digest(secret, said.encode(), hashlib.sha256)
    return f"{said}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_keys_that_the_assertion_brings_along_are_not_looked_at(doors: Doors, provider: Provider) -> None:
    mine = rsa_key(1)
    with identity_provider() as elsewhere:
        brought = {"jwk": published("first", mine), "jku": elsewhere.url, "x5u": elsewhere.url}
        refused(doors, bearer(provider.signed("first", key=mine, header=brought)), "signature is wrong")
        assert elsewhere.fetched == 0


def test_an_assertion_without_a_key_id_is_refused(doors: Doors, provider: Provider) -> None:
    text = jwt.encode(provider.claims(), provider.keys["first"], "RS256")

    refused(doors, bearer(text), "key that the identity provider does not publish")


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")  # PyJWT's own, of what is signed here
def test_what_a_provider_publishes_beside_signing_keys_does_not_count(doors: Doors, provider: Provider) -> None:
    weak, sealing = rsa_key(1, 1024), rsa_key(1)
    provider.answer = {
        "keys": [
            published("first", provider.keys["first"]),
            published("weak", weak),
            published("sealing", sealing, use="enc"),
            published("other", sealing, alg="PS256"),
            {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(SECRET.encode()).decode(), "alg": "HS256"},
            {"kty": "RSA", "kid": "broken", "n": "?", "e": "AQAB"},
            {"kty": "EC", "kid": "curve", "crv": "P-999", "x": "", "y": ""},
            "nonsense",
        ]
    }
    unknown = "key that the identity provider does not publish"

    assert doors.visitor(bearer(provider.signed("first"))) is not None
    refused(doors, bearer(provider.signed("weak", key=weak)), unknown)
    for key_id in ("sealing", "other", "broken", "curve"):
        refused(doors, bearer(provider.signed(key_id, key=sealing)), unknown)


def test_keys_are_fetched_once_for_many_assertions(doors: Doors, provider: Provider, passing: Passing) -> None:
    for _ in range(20):
        doors.visitor(bearer(provider.signed()))
        passing.now += APART.total_seconds() / 2

    assert provider.fetched == 1


def test_a_new_key_is_found_and_an_old_one_lapses(doors: Doors, provider: Provider, passing: Passing) -> None:
    old = provider.signed("first")
    doors.visitor(bearer(old))
    provider.keys = {"second": rsa_key(1)}
    passing.now += APART.total_seconds()

    assert doors.visitor(bearer(provider.signed("second"))) is not None
    refused(doors, bearer(old), "does not publish")


def test_made_up_key_ids_do_not_make_us_ask_for_each(doors: Doors, provider: Provider, passing: Passing) -> None:
    mine = rsa_key(1)
    for number in range(20):
        refused(doors, bearer(provider.signed(f"made-up-{number}", key=mine)), "does not publish")
    assert provider.fetched == 1
    passing.now += APART.total_seconds()
    for number in range(20):
        refused(doors, bearer(provider.signed(f"made-up-{number}", key=mine)), "does not publish")

    assert provider.fetched == 2


def test_many_at_once_fetch_the_keys_once(doors: Doors, provider: Provider) -> None:
    text, came, together = provider.signed(), [], threading.Barrier(8)

    def come() -> None:
        together.wait(30)
        came.append(doors.visitor(bearer(text)))

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(came)) == 1
    assert provider.fetched == 1


@pytest.mark.parametrize(
    ("status", "answer"), [(500, None), (302, None), (404, None), (200, {}), (200, []), (200, {"keys": []})]
)
def test_keys_that_were_good_count_on_for_a_while_when_the_provider_is_away(
    doors: Doors, provider: Provider, passing: Passing, status: int, answer: Any
) -> None:
    text = provider.signed()
    doors.visitor(bearer(text))
    provider.status, provider.answer = status, answer
    passing.now += REFRESHED_AFTER.total_seconds() + 1
    assert doors.visitor(bearer(text)) is not None
    assert provider.fetched == 2
    passing.now += DROPPED_AFTER.total_seconds()

    with pytest.raises(KeysUnreachable, match="COUNTERFOIL_OIDC_JWKS_URL"):
        doors.visitor(bearer(text))


def test_who_has_a_key_to_go_by_does_not_wait_while_another_fetches(
    doors: Doors, provider: Provider, passing: Passing
) -> None:
    text = provider.signed()
    doors.visitor(bearer(text))
    provider.asked.clear()
    provider.may_answer.clear()
    passing.now += REFRESHED_AFTER.total_seconds() + 1
    fetching = threading.Thread(target=doors.visitor, args=(bearer(text),))
    fetching.start()
    assert provider.asked.wait(PATIENCE_S)

    came: list[Any] = []
    other = threading.Thread(target=lambda: came.append(doors.visitor(bearer(text))))
    other.start()
    other.join(3)  # well below the time after which the fetch itself is given up
    met = list(came)
    provider.may_answer.set()
    fetching.join()
    other.join()
    assert [one.name for one in met] == ["ada"]


def test_a_key_that_may_be_new_is_not_refused_while_the_provider_is_away(
    doors: Doors, provider: Provider, passing: Passing
) -> None:
    doors.visitor(bearer(provider.signed()))
    provider.keys["second"] = rsa_key(1)
    provider.status = 503
    passing.now += APART.total_seconds()

    with pytest.raises(KeysUnreachable):
        doors.visitor(bearer(provider.signed("second")))
    assert doors.visitor(bearer(provider.signed("first"))) is not None


def test_a_provider_that_is_away_is_not_asked_at_every_request(
    doors: Doors, provider: Provider, passing: Passing
) -> None:
    provider.status = 503
    for _ in range(10):
        with pytest.raises(KeysUnreachable):
            doors.visitor(bearer(provider.signed()))
    assert provider.fetched == 1
    provider.status = 200
    passing.now += APART.total_seconds()

    assert doors.visitor(bearer(provider.signed())) is not None


def test_a_provider_that_nobody_answers_at_is_told_apart_from_a_refusal(journal: Journal, provider: Provider) -> None:
    away = ByProvider(PublishedKeys("http://127.0.0.1:1/keys"), issuer=provider.issuer, audience=AUDIENCE)
    with pytest.raises(KeysUnreachable):
        Doors(journal, provider=away).visitor(bearer(provider.signed()))


def test_the_header_of_the_proxy_names_who_came_in(doors: Doors, provider: Provider) -> None:
    came = doors.visitor(by_proxy(provider.claims(iss=None, roles="approver operator", limit=7)))

    assert came == Visitor(Person("ada", frozenset(), 7), frozenset({"approver", "operator"}), "proxy")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aud": "another"}, "made out to somebody else"),
        ({"aud": None}, "no exp, no aud"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "no exp, no aud"),
    ],
)
def test_what_the_proxy_hands_on_is_for_us_and_for_now(
    doors: Doors, provider: Provider, changed: dict[str, Any], why: str
) -> None:
    refused(doors, by_proxy(provider.claims(**changed)), why)


def test_a_header_that_the_proxy_did_not_sign_is_refused(doors: Doors, provider: Provider) -> None:
    refused(doors, by_proxy(provider.claims(), secret="x" * 40), "signature is wrong")
    refused(doors, by_proxy(provider.claims(), secret="x" * 64, algorithm="HS512"), "algorithm that does not count")
    refused(doors, {HEADER: provider.signed()}, "algorithm that does not count")
    for plain in ("ada", "", "ada@carrier.example", '{"sub": "ada"}', encoded(provider.claims())):
        refused(doors, {HEADER: plain}, "no signed JSON Web Token")


def test_the_secret_of_the_proxy_signs_no_bearer_token(doors: Doors, provider: Provider) -> None:
    refused(doors, bearer(by_proxy(provider.claims())[HEADER]), "algorithm that does not count")


def test_nothing_of_what_is_shown_is_logged(doors: Doors, provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    good, bad = provider.signed(), provider.signed("first", key=rsa_key(1))
    _, secret = doors.journal.tokens.add(principal="ada", roles=["approver"], by="root")
    _, cookie = doors.log_in(secret, place="address:unknown")
    for text in (good, secret):
        doors.visitor(bearer(text), session=cookie)
    for text in (bad, f"{secret}x"):
        refused(doors, bearer(text), "lets nobody in|unknown")

    assert "HTTP Request: GET" in caplog.text, "nothing was captured"
    for shown in (secret, cookie, *good.split("."), *bad.split(".")):
        assert shown not in caplog.text


def test_without_a_proxy_its_header_is_a_header_like_any_other(journal: Journal, provider: Provider) -> None:
    assert Doors(journal).visitor(by_proxy(provider.claims())) is None


def test_two_means_have_to_name_the_same_person(doors: Doors, provider: Provider) -> None:
    same = {**bearer(provider.signed()), **by_proxy(provider.claims())}
    other = {**bearer(provider.signed()), **by_proxy(provider.claims(sub="grace"))}
    session = doors.journal.sessions.begin(Person("grace"), ["operator"])

    assert doors.visitor(same) is not None
    refused(doors, other, "two different people, by oidc and by proxy")
    with pytest.raises(NotAuthenticated, match="by proxy and by session"):
        doors.visitor(by_proxy(provider.claims()), session=session)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sub": None}, "'sub' is not a name"),
        ({"sub": ""}, "'sub' is not a name"),
        ({"sub": 17}, "no signed JSON Web Token"),
        ({"sub": "  "}, "'sub' is not a name"),
        ({"sub": "group:motor"}, "'sub' is not a name"),
        ({"sub": "ada\n"}, "'sub' is not a name"),
        ({"sub": "ada\0"}, "'sub' is not a name"),
        ({"sub": "a" * 256}, "'sub' is not a name"),
        ({"roles": {"approver": True}}, "'roles' is not a list"),
        ({"roles": [["approver"]]}, "'roles' is not a list"),
        ({"groups": 3}, "'groups' is not a list"),
        ({"groups": ["motor\n"]}, "'groups' is not a list"),
        ({"limit": -1}, "'limit' is not a whole number"),
        ({"limit": "50000"}, "'limit' is not a whole number"),
        ({"limit": 1.5}, "'limit' is not a whole number"),
        ({"limit": True}, "'limit' is not a whole number"),
        ({"limit": 2**60}, "'limit' is not a whole number"),
    ],
)
def test_claims_that_are_not_what_they_must_be_let_nobody_in(
    doors: Doors, provider: Provider, changed: dict[str, Any], why: str
) -> None:
    refused(doors, bearer(provider.signed(**changed)), why)


def test_who_has_no_role_is_known_and_may_do_nothing(doors: Doors, provider: Provider) -> None:
    for roles in (None, [], "", ["admin", "Approver"]):
        came = doors.visitor(bearer(provider.signed(roles=roles)))
        assert came is not None
        assert (came.name, came.roles) == ("ada", frozenset())


def test_of_whom_no_limit_is_said_may_approve_nothing(doors: Doors, provider: Provider) -> None:
    came = doors.visitor(bearer(provider.signed()))

    assert came is not None
    assert came.person.limit == 0


def test_claims_have_the_names_that_the_settings_say(journal: Journal, provider: Provider) -> None:
    names = ClaimNames("preferred_username", "realm_access.roles", "https://carrier.example/groups")
    given = {
        "preferred_username": "ada.l",
        "realm_access": {"roles": ["auditor"]},
        "https://carrier.example/groups": ["home"],
        "roles": ["operator"],
    }
    by = ByProvider(PublishedKeys(provider.url), issuer=provider.issuer, audience=AUDIENCE)
    came = Doors(journal, provider=by, names=names).visitor(bearer(provider.signed(**given)))

    assert came == Visitor(Person("ada.l", frozenset({"home"})), frozenset({"auditor"}), "oidc")


@pytest.mark.parametrize("verified", [None, False, "true", 1])
def test_an_address_that_nobody_verified_is_nobodys_name(journal: Journal, provider: Provider, verified: Any) -> None:
    by = ByProvider(PublishedKeys(provider.url), issuer=provider.issuer, audience=AUDIENCE)
    doors = Doors(journal, provider=by, names=ClaimNames("email"))
    address = "ada@carrier.example"

    refused(doors, bearer(provider.signed(email=address, email_verified=verified)), "nobody verified")
    came = doors.visitor(bearer(provider.signed(email=address, email_verified=True)))
    assert came is not None
    assert came.name == address


ODD = st.one_of(
    st.text(max_size=200),
    st.lists(st.text(alphabet="eyJAhbGciOiJ9_-=.", max_size=40), min_size=2, max_size=5).map(".".join),
    st.tuples(
        st.dictionaries(
            st.sampled_from(["alg", "kid", "crit", "b64", "typ"]),
            st.recursive(st.sampled_from(["RS256", "HS256", "first", None, 1, True, 1e400]), st.lists, max_leaves=3),
        ).map(encoded),
        st.just(encoded({"sub": "ada"})),
        st.sampled_from(["", "AAAA", "?"]),
    ).map(".".join),
)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_whatever_is_shown_is_refused_and_breaks_nothing(doors: Doors) -> None:
    """What is odd is odd before any storage is asked, so one engine is enough."""

    @settings(max_examples=300, deadline=None, derandomize=True)
    @given(ODD)
    def shown(text: str) -> None:
        for headers in ({HEADER: text}, bearer(text)):
            with pytest.raises(NotAuthenticated):
                doors.visitor(headers)

    shown()
    for text in ("[" * 8000, "." * 17_000, f"{base64.urlsafe_b64encode(b'[' * 8000).decode()}.e30.AAAA"):
        refused(doors, bearer(text), "no signed JSON Web Token")


def test_the_settings_say_which_doors_there_are(journal: Journal, provider: Provider) -> None:
    given = {
        "oidc_issuer": provider.issuer,
        "oidc_jwks_url": provider.url,
        "oidc_audience": AUDIENCE,
        "proxy_header": "X-Forwarded-Access-Token",
        "roles_claim": "r",
    }
    theirs = doors_of(Settings(_env_file=None, **given), journal)  # type: ignore[call-arg]  # pydantic-settings' own
    ours = doors_of(Settings(_env_file=None, **given, proxy_secret=SecretStr(SECRET)), journal)  # type: ignore[call-arg]
    signed = provider.signed(r=["operator"])
    by_secret = by_proxy(provider.claims(r=["operator"]))[HEADER]

    for doors, text in ((theirs, signed), (ours, by_secret)):
        came = doors.visitor({"x-forwarded-access-token": text})
        assert came == Visitor(Person("ada"), frozenset({"operator"}), "proxy")
    refused(theirs, {"X-Forwarded-Access-Token": by_secret}, "algorithm that does not count")
    refused(ours, {"X-Forwarded-Access-Token": signed}, "algorithm that does not count")
    assert SECRET not in repr(vars(ours)) + repr(ours.proxy)
