"""
What a request may ask, and how it is refused before anything is looked at: names, cursors, limits, headers.

Text that goes on to the journal has no control characters: a database may not take them, and a log would be a different one.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from checkpointing.digest import canonical
from checkpointing.errors import ArgumentsNotJson, NotAllowed, PayloadChanged, Refused
from checkpointing.listing import LAST, Mark
from graph.asks import LONGEST_THREAD_ID, is_plain
from service.http.segments import whole

LARGEST = 2**53 - 1
"""The largest number that every reader of JSON reads alike."""
ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"
STORABLE = r"^[^\x00]*$"
"""What a database does not take is U+0000."""
SHOWN = 40
"""How much of a field's name is repeated to whoever sent it, in characters."""
MOST = 200
"""The most that one page has."""


class RightsMissing(NotAllowed):
    """Whoever asks comes in none of the roles that may do this."""


class NotThere(Refused, LookupError):
    """There is nothing of this name, or nothing that this visitor may see."""


class AskedAnew(PayloadChanged):
    """
    What was to be decided is asked anew, with another payload.

    Attributes:
        approval: The approval that asks it now.
    """

    def __init__(self, message: str, *, approval: str) -> None:
        """Say which one asks it now."""
        super().__init__(message)
        self.approval = approval


class CursorInvalid(Refused, ValueError):
    """The cursor is none that this list gave out for the same question."""


class HeaderInvalid(Refused, ValueError):
    """A header that is needed is missing, or one cannot be read."""


class QueryUnknown(Refused, ValueError):
    """The query has a name that is not known here."""


class ThreadTaken(Refused):
    """The thread has a run that somebody else submitted."""


def plain(text: str) -> str:
    """Return *text*, which has to be one line."""
    if not is_plain(text):
        raise ValueError("text without control characters")
    return text


def named(segment: str) -> str:
    """
    Return what a segment of the path names.

    Raises:
        NotThere: nothing can be called that.
    """
    name = whole(segment)
    if not is_plain(name):
        raise NotThere("nothing is called that: a name is one line of text")
    return name


def pure_json(value: Any) -> Any:
    """Return *value*, which has to be JSON that a digest can bind: no NaN, no integer beyond 2^53, no lone surrogate, no U+0000 (which Postgres does not take), not too deep."""
    try:
        canonical(value)
    except ArgumentsNotJson as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("JSON that is not nested so deeply") from error
    if _holds_nul(value):
        raise ValueError("JSON without U+0000, which cannot be stored")
    return value


Name = Annotated[str, Field(min_length=1, max_length=255, pattern=ONE_LINE), AfterValidator(plain)]
Text = Annotated[str, Field(max_length=10_000, pattern=STORABLE)]
Json = Annotated[Any, AfterValidator(pure_json)]
Amount = Annotated[int, Field(ge=0, le=LARGEST)]

ThreadId = Annotated[
    str,
    Path(
        description="The thread's id; `/` in it is written `%2F`.",
        max_length=LONGEST_THREAD_ID,
        examples=["claim-0042"],
    ),
    AfterValidator(named),
]
ApprovalId = Annotated[
    str,
    Path(description="The approval's id.", max_length=255, examples=["apr_74071e3af07eb10a318c"]),
    AfterValidator(named),
]
EffectKey = Annotated[
    str,
    Path(description="The effect's key as it was sent to the receiver.", max_length=255),
    AfterValidator(named),
]
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=1000,
        pattern="^[A-Za-z0-9_-]*$",
        description="`next` of the page before; the other parameters are to be the same as then.",
    ),
]


class Body(BaseModel):
    """What every body shares: a key that is not known is refused, so nobody gives one that they think counts."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)


def written(mark: Mark | None, *question: object) -> str | None:
    """Return the cursor for a *mark* in the list that answers *question*."""
    if mark is None:
        return None
    content = json.dumps([mark.at, mark.after, _asked(question)], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read(cursor: str | None, *question: object) -> Mark | None:
    """
    Return the mark in a cursor.

    Raises:
        CursorInvalid: it is none, or one of another question.
    """
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        at, after, asked = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise CursorInvalid(NO_CURSOR) from error
    if type(at) is not int or not -1 <= at <= LAST or not isinstance(after, str) or not is_plain(after):
        raise CursorInvalid(NO_CURSOR)
    if asked != _asked(question):
        raise CursorInvalid("this cursor is of another question: give the same parameters as for the page before")
    return Mark(at, after)


NO_CURSOR = "a cursor is what `next` of a page says, unchanged"


def _holds_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_nul, value)) or any(map(_holds_nul, value.values()))
    return any(map(_holds_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


def _asked(question: tuple[object, ...]) -> str:
    """Return the question in short."""
    return f"{binascii.crc32(json.dumps(question).encode()):08x}"
