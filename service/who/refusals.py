"""
What somebody at the door is told who does not come in. None of these repeats what they showed: a token in a message is a token in a log.
"""

from __future__ import annotations

from checkpointing.errors import Refused, TryAgain


class NotAuthenticated(Refused, PermissionError):
    """What was shown lets nobody in: it is unknown, expired, revoked, not signed by whom it should be, or says two things."""


class KeysUnreachable(TryAgain, ConnectionError):
    """The identity provider's keys cannot be read just now, so nobody can tell whose signature this is; ask again later."""
