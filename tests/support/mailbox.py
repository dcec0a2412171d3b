"""An SMTP server on a socket, which keeps what it was handed and answers as it is told."""

from __future__ import annotations

from asyncio import Server
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


@dataclass
class Mailbox:
    """
    What was handed over.

    Attributes:
        answers: What is said to the next messages; then 250.
        raw: The messages as they came.
        recipients: To whom each was addressed.
        refused: What is said to the next recipients; then they are known.
    """

    url: str = ""
    answers: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def messages(self) -> list[EmailMessage]:
        """The messages, read."""
        return [read(one) for one in self.raw]

    @property
    def ids(self) -> list[str]:
        """Which message each was, in order."""
        return [str(one["Message-ID"]) for one in self.messages]

    async def handle_RCPT(  # noqa: N802  # aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refused:
            return self.refused.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 known"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  # aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        self.raw.append(envelope.content)
        self.recipients.append(list(envelope.rcpt_tos))
        return self.answers.pop(0) if self.answers else "250 taken"


def read(raw: bytes) -> EmailMessage:
    found = message_from_bytes(raw, policy=policy.default)
    assert isinstance(found, EmailMessage)
    return found


class AnyPort(Controller):
    """A controller on a free port; aiosmtpd's own calls the port it was given."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mailbox(**options: Any) -> Iterator[Mailbox]:
    """Serve until the end of the block; *options* are aiosmtpd's."""
    told = Mailbox()
    controller = AnyPort(told, hostname="127.0.0.1", port=0, **options)
    controller.start()
    try:
        told.url = f"smtp://127.0.0.1:{controller.port}"
        yield told
    finally:
        controller.stop()
