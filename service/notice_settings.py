"""
The settings of who is told what happens to approvals: endpoints of webhooks, a mail server, and who has which address.

Half of what mail takes is an error that names the other half: nobody is to wait for a reminder that cannot come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from pydantic import SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings

from service.notices.routes import MAILED, read_addresses, read_endpoints, read_events
from service.setting_names import PREFIX
from tools.mail import check_sender, mail_server

READ: dict[str, Callable[[str], object]] = {
    "webhooks": read_endpoints,
    "smtp_url": mail_server,
    "notice_to": read_addresses,
    "notice_sender": check_sender,
    "webhook_events": read_events,
    "notice_events": read_events,
}
"""What reads a setting, and refuses it."""


class NoticeSettings(BaseSettings):
    """
    Who is told what, and how.

    Attributes:
        base_url: Where the pages are, as people reach them; links in notices begin with it.
        webhooks: Endpoints that are told: URLs with commas between, each with its secrets behind it.
        webhook_events: What they are told of; empty for everything.
        smtp_url: The mail server for notices to approvers.
        notice_sender: Who writes them.
        notice_to: Who has which address: `name=address`, `group:NAME=address`, or an address alone for everybody else.
        notice_events: What is mailed.
    """

    base_url: str | None = None
    webhooks: SecretStr = SecretStr("")
    webhook_events: str = ""
    smtp_url: SecretStr = SecretStr("")
    notice_sender: str = ""
    notice_to: str = ""
    notice_events: str = ",".join(MAILED)

    @field_validator(*READ)
    @classmethod
    def _of_notices(cls, given: SecretStr | str, field: ValidationInfo) -> SecretStr | str:
        """Refuse what notices cannot be sent with; none of it is repeated."""
        if text := given.get_secret_value() if isinstance(given, SecretStr) else given:
            READ[str(field.field_name)](text)
        return given

    @model_validator(mode="after")
    def _whole_mail(self) -> Self:
        """Refuse half of what notices by mail take."""
        given = {
            "SMTP_URL": self.smtp_url.get_secret_value(),
            "NOTICE_SENDER": self.notice_sender,
            "NOTICE_TO": self.notice_to,
        }
        missing = [name for name, value in {**given, "BASE_URL": self.base_url}.items() if not value]
        if any(given.values()) and missing:
            raise ValueError(f"notices by mail take {', '.join(f'{PREFIX}{name}' for name in missing)} too")
        return self
