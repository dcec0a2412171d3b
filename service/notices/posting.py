"""
Posting: for what is noted, runs of the graph `notices` are admitted, one for each place it goes to; then the note goes.

    noted ──▶ a run admitted for each message ──▶ forgotten
                      │ a crash here
                      └──▶ the next look admits the same runs again, which changes nothing

So a notice is told of once to each place, however many workers look and whenever one of them dies. A note that no place is to hear of goes at once;
where there are no places at all, when it is old.
"""

from __future__ import annotations

import threading
from datetime import timedelta

import structlog

from checkpointing import Journal
from checkpointing.errors import InputChanged, RunDead, StoreUnreachable, TryAgain
from checkpointing.notices import Notice
from graph import DurableGraph, thread
from graph.advance import one_line
from service.notices.routes import Message, Routes
from service.notices.texts import ASKING

log = structlog.get_logger("counterfoil.notices")

BATCH = 50
"""How many notes one look takes."""
KEPT = timedelta(hours=1)
"""How old a note gets where nobody is to be told; young ones may be another worker's, whose settings have somebody."""


class Posting:
    """
    Admits what is to be told. Any thread may ask it to look.

    Attributes:
        graph: What sends the messages; a worker carries its runs on beside its own.
    """

    def __init__(self, journal: Journal, graph: DurableGraph, routes: Routes) -> None:
        """Post what *journal* has noted to where *routes* say, by runs of *graph*."""
        self.graph = graph
        self._journal = journal
        self._routes = routes
        self._looking = threading.Lock()
        self._asked = False
        self._beyond: set[str] = set()

    def look(self) -> int:
        """
        Post what is noted by now, up to `BATCH` of it, and return how many notes went; what is left, or fails, the next look finds.

        Of several threads one looks, and once more for those that asked meanwhile; they do not wait for it.
        """
        self._asked, gone = True, 0
        while self._asked and self._looking.acquire(blocking=False):
            try:
                self._asked = False
                gone += self._look()
            finally:
                self._looking.release()
        return gone

    def _look(self) -> int:
        if not self._routes:
            return forget(self._journal)
        try:
            noted = self._journal.notices.noted(limit=BATCH + len(self._beyond))
            return sum(self._posted(notice) for notice in noted if notice.id not in self._beyond)
        except StoreUnreachable as away:
            log.warning("journal_away", error=one_line(away))
            return 0

    def _posted(self, notice: Notice) -> bool:
        try:
            messages = self._messages(notice)
            for message in messages:
                self._admit(message)
            self._journal.notices.told(notice.id)
        except StoreUnreachable:
            raise
        except TryAgain as later:
            log.warning("notice_later", notice=notice.id, error=one_line(later))
            return False
        except Exception:
            # A fault of ours, which this code would only meet again; another process, with other code, may tell it. The others are told all the same.
            log.exception("notice_failed", notice=notice.id)
            self._beyond.add(notice.id)
            return False
        log.info("notice_posted", notice=notice.id, said=notice.event, messages=len(messages))
        return True

    def _messages(self, notice: Notice) -> list[Message]:
        """Return who is told what; nobody is mailed a question that has its answer by now."""
        found = self._routes.of(notice)
        if notice.event in ASKING and any(one.kind == "mail" for one in found):
            waits = self._journal.approvals.get(notice.subject).state == "pending"
            return [one for one in found if one.kind != "mail" or waits]
        return found

    def _admit(self, message: Message) -> None:
        given = {"kind": message.kind, "arguments": message.arguments}
        try:
            self.graph.submit(given, thread(message.thread_id))
        except (InputChanged, RunDead) as before:
            # Admitted before a crash: under settings that said it in other words, or it has come to its end since.
            log.info("notice_admitted_before", thread=message.thread_id, said=type(before).__name__)


def forget(journal: Journal) -> int:
    """Forget the notes that nobody has posted for a while, and return how many; a worker that has places to tell was faster, if there is one."""
    try:
        return journal.notices.forget(older=KEPT)
    except StoreUnreachable as away:
        log.warning("journal_away", error=one_line(away))
        return 0
