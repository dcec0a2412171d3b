"""A mail is one message with the headers it is meant to have, whatever its parts contain; and each answer of a server says what to do."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from checkpointing.errors import Rejected, Unreachable
from tests.support.mailbox import Mailbox, mailbox, read
from tools.mail import MailServer, Safety, check_sender, mail_effect, mail_server, written
from tools.wire import NoConnection

SENDER = "Claims <claims@carrier.example>"
SECRET = "open-sesame"  # noqa: S105  # nobody's
HEADERS = {
    "From", "To", "Subject", "Message-ID", "Auto-Submitted", "Date",
    "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
}  # fmt: skip


def send(url: str, **parts: str) -> dict[str, Any]:
    mail = {"to": "ada@carrier.example", "subject": "Please decide", "text": "Hello.\n", "key": "k-1", **parts}
    sent = mail_effect(mail_server(url), sender=SENDER, timeout_s=5).function(**mail)
    assert isinstance(sent, dict)
    return sent


def test_a_mail_arrives_once_with_an_id_that_follows_from_its_key(box: Mailbox) -> None:
    first, again, other = send(box.url), send(box.url), send(box.url, key="k-2")

    assert first == again != other
    assert [one["Message-ID"] for one in box.messages] == [one["message_id"] for one in (first, again, other)]
    [message, *_] = box.messages
    assert box.recipients[0] == ["ada@carrier.example"]
    assert (message["From"], message["To"], message["Subject"]) == (SENDER, "ada@carrier.example", "Please decide")
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content().strip() == "Hello."


@pytest.mark.parametrize(
    "subject",
    [
        "Hi\r\nBcc: eve@evil.example",
        "Hi\n\nBody: of mine",
        "Hi\rBcc: eve@evil.example",
        "Hi\u2028Bcc: eve@evil.example",
        "Hi\x85Bcc: eve@evil.example",
        "Hi\x00\x0b\x0cBcc: eve@evil.example",
        "=?utf-8?q?Hi=0d=0aBcc:_eve@evil.example?=",
        "é" * 300 + "\r\nBcc: eve@evil.example",
    ],
)
def test_a_subject_is_one_header_whatever_it_contains(box: Mailbox, subject: str) -> None:
    send(box.url, subject=subject)

    [message], [recipients] = box.messages, box.recipients
    assert set(message.keys()) == HEADERS
    assert recipients == ["ada@carrier.example"]
    assert not [line for line in box.raw[0].splitlines() if line.lower().startswith((b"bcc", b"body"))]


@pytest.mark.parametrize(
    "to",
    [
        "ada@carrier.example\r\nBcc: eve@evil.example",
        "ada@carrier.example, eve@evil.example",
        "ada@carrier.example> RCPT TO:<eve@evil.example",
        "Ada <ada@carrier.example>",
        "ada",
        "",
        "adä@carrier.example",
        "ada@carrier.example\n",
    ],
)
def test_a_recipient_is_one_address_or_refused(box: Mailbox, to: str) -> None:
    with pytest.raises(Rejected, match="one mail address"):
        send(box.url, to=to)
    assert box.raw == []


def test_a_text_ends_no_message(box: Mailbox) -> None:
    text = "one\r\n.\r\nQUIT\r\nMAIL FROM:<eve@evil.example>\nünd\n"
    send(box.url, text=text)

    [message] = box.messages
    assert message.get_content().splitlines() == text.splitlines()


@pytest.mark.parametrize(
    ("answer", "error"),
    [("451 later", Unreachable), ("550 no such mailbox", Rejected), ("554 spam", Rejected), ("421 bye", Unreachable)],
)
def test_what_an_answer_means(box: Mailbox, answer: str, error: type[Exception]) -> None:
    box.answers.append(answer)
    with pytest.raises(error, match=answer) as raised:
        send(box.url)
    assert type(raised.value) is error


@pytest.mark.parametrize(("answer", "error"), [("450 busy", Unreachable), ("550 no such mailbox", Rejected)])
def test_what_the_refusal_of_a_recipient_means(box: Mailbox, answer: str, error: type[Exception]) -> None:
    box.refused.append(answer)
    with pytest.raises(error, match=answer) as raised:
        send(box.url)
    assert type(raised.value) is error
    assert box.raw == []


def test_nobody_there_is_told_from_a_connection_that_was_lost() -> None:
    with pytest.raises(NoConnection, match="mail server 127.0.0.1:1 got no answer"):
        send("smtp://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.listen()
        with pytest.raises(Unreachable):
            mail_effect(
                mail_server(f"smtp://127.0.0.1:{silent.getsockname()[1]}"), sender=SENDER, timeout_s=0.2
            ).function(to="ada@carrier.example", subject="s", text="t", key="k")


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_whoever_has_a_password_logs_in_and_a_wrong_one_is_not_repeated() -> None:
    def check(_server: object, _session: object, _envelope: object, _mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=data.password == b"a:b@c/%", handled=False)

    options = {"authenticator": check, "auth_required": True, "auth_require_tls": False}
    with mailbox(**options) as box:
        place = box.url.removeprefix("smtp://")
        send(f"smtp://claims:a%3Ab%40c%2F%25@{place}")
        with pytest.raises(Rejected, match="535") as wrong:
            send(f"smtp://claims:{SECRET}@{place}")
        with pytest.raises(Rejected, match="530"):
            send(box.url)

    assert len(box.raw) == 1
    assert SECRET not in str(wrong.value)


@pytest.mark.parametrize(
    ("url", "safety", "port"),
    [
        ("smtps://mail.example", "tls", 465),
        ("smtps://127.0.0.1:2465", "tls", 2465),
        ("smtp://mail.example", "starttls", 587),
        ("smtp://[::1]:25", "none", 25),
        ("smtp://localhost", "none", 587),
    ],
)
def test_nothing_leaves_this_machine_unprotected(url: str, safety: str, port: int) -> None:
    server = mail_server(url)

    assert (server.safety, server.port) == (safety, port)


def test_a_server_without_the_protection_it_needs_gets_nothing(box: Mailbox) -> None:
    with pytest.raises(Rejected, match="STARTTLS"):
        handed_to(safely("starttls", box))
    assert box.raw == []


def test_a_mail_is_handed_over_under_tls_and_to_nobody_who_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mailbox(tls_context=certified(tmp_path), require_starttls=True) as box:
        with pytest.raises(Unreachable, match="SSLCertVerificationError"):
            handed_to(safely("starttls", box))
        assert box.raw == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        handed_to(safely("starttls", box))
    with mailbox(ssl_context=certified(tmp_path)) as other:
        handed_to(safely("tls", other))

    assert len(box.raw) == len(other.raw) == 1


def safely(safety: Safety, box: Mailbox) -> MailServer:
    return MailServer("127.0.0.1", int(box.url.rpartition(":")[2]), safety)


def handed_to(server: MailServer) -> None:
    mail_effect(server, sender=SENDER, timeout_s=5).function(to="ada@carrier.example", subject="s", text="t", key="k")


def certified(folder: Path) -> ssl.SSLContext:
    """Return what a server at 127.0.0.1 shows, whose certificate is in the folder, too."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


@pytest.mark.parametrize(
    "url", ["mail.example", "http://mail.example", "smtp://", f"smtp://claims:{SECRET}@[x", f"smtp://{SECRET}@mail.example",
            f"smtp://a:{SECRET}@mail.example/inbox", f"smtp://a:{SECRET}@mail.example:x"]
)  # fmt: skip
def test_what_is_no_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"smtps://|a user and a password") as refused:
        mail_server(url)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(mail_server(f"smtp://a:{SECRET}@mail.example"))


@pytest.mark.parametrize("sender", ["Claims", "", "Claims <claims@>", "a@b.example\nBcc: c@d.example"])
def test_a_sender_has_one_address(sender: str) -> None:
    with pytest.raises(ValueError, match="one mail address"):
        check_sender(sender)


def test_a_sender_with_a_strange_name_is_one_header() -> None:
    sender = '"Cläims, (of) =?utf-8?q?Hi=0d=0aBcc:_eve@evil.example?=" <claims@carrier.example>'
    message = read(bytes(written(sender, "ada@carrier.example", "s", "t", "k")))

    assert set(message.keys()) == HEADERS - {"Date"}
    assert [one.addr_spec for one in message["From"].addresses] == ["claims@carrier.example"]
