"""
What a notice says: a short mail for people, and the data of a webhook for programs.

Both say which approval and what happened to it. What is to be approved, and by whom it was decided, stands behind the link, where whoever opens it
has to log in; opening it approves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from checkpointing.notices import Notice
from tools.mail import one_line

LEAD = {
    "approval.open": "Please decide",
    "approval.remind": "Reminder, please decide",
    "approval.escalate": "Nobody has decided in time, please decide",
    "approval.reassign": "You are asked now, please decide",
    "approval.extend": "There is more time to decide",
    "approval.decide": "Decided",
    "approval.expire": "Nobody has decided in time",
    "approval.withdraw": "Nothing to decide any more",
}
"""What a mail begins with, by what happened."""
EVENTS = tuple(LEAD)
ASKING = frozenset({"approval.open", "approval.remind", "approval.escalate", "approval.reassign"})
"""Those that ask somebody to decide."""
AT_EXPIRY = {"approve": "It counts as approved.", "reject": "It counts as rejected.", "hand_over": "It is handed over."}
LONGEST = 200
"""Of a name, in characters: it is a part of a subject."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail before it has a recipient."""

    subject: str
    text: str


def letter(notice: Notice, base_url: str) -> Letter:
    """Return the mail that tells of *notice*."""
    lead, about = LEAD[notice.event], f"{_short(notice.body['name'])}, {_short(notice.thread_id)}"
    lines = [f"{lead}: {about}.", *_details(notice)]
    link = f"{link_to(notice.subject, base_url)}\nOpening the link decides nothing."
    return Letter(f"{lead}: {about}", "\n".join(lines) + f"\n\n{link}\n")


def data(notice: Notice, base_url: str | None) -> dict[str, Any]:
    """Return what a webhook says of *notice*; no names of people, and nothing of the payload."""
    return {
        "notice": notice.id,
        "approval": notice.subject,
        "name": notice.body["name"],
        "thread": notice.thread_id,
        "tier": notice.body["tier"],
        "expires_at": notice.body["expires_at"],
        "decision": notice.body.get("type"),
        "url": link_to(notice.subject, base_url) if base_url else None,
    }


def link_to(approval_id: str, base_url: str) -> str:
    """Return where the approval is shown."""
    return f"{base_url.rstrip('/')}/approvals/{quote(approval_id, safe='')}"


def _details(notice: Notice) -> list[str]:
    tier, until = notice.body["tier"], notice.body["expires_at"]
    if notice.event == "approval.expire":
        return [AT_EXPIRY.get(str(notice.body.get("type")), "Its time is over.")]
    if notice.event == "approval.decide":
        return [f"The decision: {_short(str(notice.body.get('type')))}."]
    if notice.event == "approval.withdraw":
        return []
    asked = [f"Asked as: {_short(tier)}."] if tier else []
    return [*asked, f"Time to decide: until {_instant(until)}."] if until else asked


def _instant(until: str) -> str:
    return f"{datetime.fromisoformat(until):%Y-%m-%d %H:%M} UTC"


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
