"""
Settings: from the environment and a `.env` file, every name beginning with `COUNTERFOIL_`.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """
    Where everything is. Secrets are never printed.

    Attributes:
        url: The journal: `sqlite:///claims.db` or `postgresql://…`.
        artefacts: The folder for documents; by default beside the journal.
        lease_seconds: How long a worker that died keeps others from its thread.
        approval_hours: How long an adjuster has.
        stripe_url, mail_url, claims_url: The systems outside; by default those of a sandbox on this machine.
        model: A chat model's name as LangChain's `init_chat_model` takes it; without one the embedded assessor works.
    """

    model_config = SettingsConfigDict(
        env_prefix="COUNTERFOIL_", env_file=".env", extra="ignore", frozen=True
    )

    url: SecretStr = SecretStr("sqlite:///counterfoil.db")
    artefacts: str | None = None
    lease_seconds: float = Field(default=30, ge=0.1)
    approval_hours: float = Field(default=72, gt=0)
    stripe_key: SecretStr = SecretStr("sk_test_sandbox")
    stripe_url: str = "http://127.0.0.1:8042"
    mail_key: SecretStr = SecretStr("re_sandbox")
    mail_url: str = "http://127.0.0.1:8042"
    mail_sender: str = "Claims <claims@carrier.example>"
    claims_url: str = "http://127.0.0.1:8042"
    timeout_seconds: float = Field(default=10, gt=0)
    model: str | None = None

    @property
    def lease(self) -> timedelta:
        """The lease as a duration."""
        return timedelta(seconds=self.lease_seconds)

    @property
    def approval_ttl(self) -> timedelta:
        """The adjuster's time as a duration."""
        return timedelta(hours=self.approval_hours)
