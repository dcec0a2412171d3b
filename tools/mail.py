"""
The effect `mail`: one message a slot, by SMTP, which has no keys and no look-up.

    taken                                    the outcome: the message's id, which follows from the effect's key
    no connection, a lost one, 4yz           Unreachable
    5yz, and what the server does not know   Rejected

So doubt about a mail takes a person, unless whoever declares it says that a second copy harms nobody. Who looks finds the copies by their
`Message-ID`. A lost connection after the last line leaves it open whether the message was taken: https://www.rfc-editor.org/rfc/rfc1047
"""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_LINES
from email.utils import format_datetime, parseaddr
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from checkpointing.clock import Clock, system_clock
from checkpointing.errors import Rejected, ToolError, Unreachable
from checkpointing.text import storable
from tools.effect import Effect, effect
from tools.receiver import Receiver
from tools.receivers import SMTP
from tools.webhooks import is_here
from tools.wire import NoConnection

ADDRESS = re.compile(r"(?=[ -~]{3,254}$)[^\s@<>(),;:\\\"\[\]]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
Safety = Literal["tls", "starttls", "none"]


@dataclass(frozen=True, slots=True)
class MailServer:
    """
    Whom mail is handed to.

    Attributes:
        safety: TLS from the beginning, TLS before anything is said, or none, which is for this machine.
        user: Whom to log in as; empty for nobody.
    """

    host: str
    port: int
    safety: Safety
    user: str = ""
    password: str = field(default="", repr=False)


def mail_server(url: str) -> MailServer:
    """
    Return the server of `smtps://user:password@host:465` (TLS from the beginning) or `smtp://user:password@host:587` (STARTTLS; none on this machine).

    Raises:
        ValueError: the message says what is wanted, and has nothing of what was given.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("smtp", "smtps") or not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(
            "smtps://user:password@host:465, or smtp://user:password@host:587 for STARTTLS, with %, @, / and : of a password percent-encoded"
        )
    if bool(parts.username) != bool(parts.password):
        raise ValueError("a user and a password, or neither")
    safety: Safety = "tls" if parts.scheme == "smtps" else "none" if is_here(host) else "starttls"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(host, port or (465 if safety == "tls" else 587), safety, user, password)


def check_address(text: str) -> str:
    """
    Return *text*, which is one plain address: `ada@carrier.example`.

    Raises:
        ValueError: it is none.
    """
    if not ADDRESS.fullmatch(text):
        raise ValueError("one mail address, as in ada@carrier.example")
    return text


def check_sender(text: str) -> str:
    """
    Return *text*, an address with or without a name before it: `Claims <claims@carrier.example>`.

    Raises:
        ValueError: it is none.
    """
    check_address(parseaddr(text)[1] if text.isprintable() else "")
    return text


def mail_effect(
    server: MailServer | None,
    *,
    sender: str,
    timeout_s: float = 10.0,
    receiver: Receiver = SMTP,
    clock: Clock = system_clock,
) -> Effect:
    """
    Return the effect `mail`, which writes as *sender* ("Claims <claims@carrier.example>").

    Its keywords are `to`, `subject`, `text` and `key`; it answers `{"message_id": ...}`. Without a *server* every call is `Unreachable`.
    """

    @effect(receiver=receiver, name="mail")
    def mail(*, to: str, subject: str, text: str, key: str) -> dict[str, Any]:
        if server is None:  # not `Rejected`: another worker may have one
            raise Unreachable("this worker has no mail server: see COUNTERFOIL_SMTP_URL")
        message = written(sender, to, subject, text, key)
        message["Date"] = format_datetime(clock())
        with _meaning(), _connected(server, timeout_s, parseaddr(sender)[1].partition("@")[2]) as smtp:
            smtp.send_message(message, from_addr=parseaddr(sender)[1], to_addrs=[to])
        return {"message_id": str(message["Message-ID"])}

    return mail


def written(sender: str, to: str, subject: str, text: str, key: str) -> EmailMessage:
    """
    Return the message; whatever its parts have, each is one header, and the text is the body.

    Raises:
        Rejected: *to* is no address.
    """
    name, address = parseaddr(sender)
    try:
        check_address(to)
    except ValueError as wrong:
        raise Rejected(f"the recipient is to be {wrong}") from None
    message = EmailMessage(policy=SMTP_LINES)
    message["From"] = Address(_header(name), addr_spec=check_address(address))
    message["To"] = Address(addr_spec=to)
    message["Subject"] = _header(subject)
    message["Message-ID"] = f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{address.partition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence is answered to us
    message.set_content(storable(text), charset="utf-8")
    return message


def one_line(text: str) -> str:
    """Return *text* without line breaks, control and format characters, which stand for nothing in a header or in a line."""
    kept = (" " if unicodedata.category(one)[0] in "CZ" else one for one in storable(text))
    return " ".join("".join(kept).split())


def _header(text: str) -> str:
    """Return *text* for a header: Python 3.11 reads `=?utf-8?q?=0d=0aBcc:?=` in one as what it stands for, and writes the line break out."""
    return one_line(text).replace("=?", "= ?")


@contextmanager
def _connected(server: MailServer, timeout_s: float, me: str) -> Iterator[smtplib.SMTP]:
    """Lend a connection that is logged in. Its end says nothing of the message, so nothing comes of a farewell that fails."""
    trusted = None if server.safety == "none" else ssl.create_default_context()
    try:
        if server.safety == "tls":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host, server.port, local_hostname=me, timeout=timeout_s, context=trusted
            )
        else:
            smtp = smtplib.SMTP(server.host, server.port, local_hostname=me, timeout=timeout_s)
    except OSError as error:
        if isinstance(error, smtplib.SMTPException):
            raise
        raise NoConnection(f"mail server {server.host}:{server.port} got no answer: {type(error).__name__}") from error
    try:
        if server.safety == "starttls":
            smtp.starttls(context=trusted)
        if server.user:
            smtp.login(server.user, server.password)
        yield smtp
        with suppress(smtplib.SMTPException, OSError):
            smtp.quit()
    finally:
        smtp.close()


@contextmanager
def _meaning() -> Iterator[None]:
    """Turn the client's errors into what the caller must do."""
    try:
        yield
    except smtplib.SMTPRecipientsRefused as refused:
        [(code, said)] = refused.recipients.values()
        raise _refused(code, said) from None
    except smtplib.SMTPResponseException as refused:
        raise _refused(refused.smtp_code, refused.smtp_error) from None
    except smtplib.SMTPNotSupportedError as missing:
        raise Rejected(f"the mail server does not know what is asked of it: {missing}") from None
    except (smtplib.SMTPException, OSError) as lost:
        raise Unreachable(f"the mail server gave no answer: {type(lost).__name__}") from lost


def _refused(code: int, said: bytes | str) -> ToolError:
    text = one_line(said.decode("utf-8", "replace") if isinstance(said, bytes) else said)[:200]
    return (Rejected if 500 <= code < 600 else Unreachable)(f"the mail server answered {code} {text}")
