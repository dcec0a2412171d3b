"""What can be set in a sandbox while it runs; it stays set over a restart."""

from __future__ import annotations

from tools.sandbox.store import SandboxStore

FIRST_BALANCE = 99_999_999
"""Minor units: as much as the largest single transfer, so no transfer fails unless somebody lowers it."""


class Settings:
    """The settings of one sandbox."""

    def __init__(self, store: SandboxStore) -> None:
        self._store = store

    GET = "select value from settings where name = :name"

    @property
    def balance(self) -> int:
        """The most that a single transfer may be, in minor units."""
        row = self._store.row(self.GET, name="balance")
        return int(row["value"]) if row else FIRST_BALANCE

    SET = "insert or replace into settings (name, value) values (:name, :value)"

    def set_balance(self, amount: int) -> None:
        """Let transfers above *amount* fail with `balance_insufficient`."""
        self._store.rows(self.SET, name="balance", value=amount)
