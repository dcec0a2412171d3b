"""
What somebody at the door is told who does not come in. None of these repeats what they showed: a token in a message is a token in a log.
"""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from checkpointing.errors import Refused, TryAgain


class NotAuthenticated(Refused, PermissionError):
    """What was shown lets nobody in: it is unknown, expired, revoked, not signed by whom it should be, or says two things."""


class KeysUnreachable(TryAgain, ConnectionError):
    """The identity provider's keys cannot be read just now, so nobody can tell whose signature this is; ask again later."""


class TooManyLogins(TryAgain):
    """
    Too many logins from there have failed; nothing was looked at.

    Attributes:
        wait: How long the next one has to wait.
    """

    def __init__(self, wait: timedelta) -> None:
        """Say how long."""
        self.wait = wait
        super().__init__(f"too many logins from here have failed; try again in {self.wait_s} s")

    @property
    def wait_s(self) -> int:
        """The wait in whole seconds, for the header Retry-After."""
        return max(1, ceil(self.wait.total_seconds()))
