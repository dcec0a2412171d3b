"""
The journal: everything about threads that survives a crash, behind one URL.

    with open_journal("sqlite:///claims.db") as journal: ...
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from checkpointing.approvals import Approvals
from checkpointing.artefacts import Artefacts
from checkpointing.audit import Audit
from checkpointing.bridge import Bridge
from checkpointing.clock import system_clock
from checkpointing.contradictions import approvals_witness, effects_witness, runs_witness, tokens_witness
from checkpointing.errors import JournalUnusable
from checkpointing.idempotency import Idempotency
from checkpointing.leases import Leases
from checkpointing.ledger import Ledger
from checkpointing.listing import Listing
from checkpointing.logins import Logins
from checkpointing.migrate import bring_up_to_date, known
from checkpointing.notices import Notices
from checkpointing.postgres import CONNECTIONS, PostgresEngine
from checkpointing.runs import Runs
from checkpointing.savers import make_saver, newest_tables
from checkpointing.sessions import Sessions
from checkpointing.sqlite import SqliteEngine
from checkpointing.standing import Standing, found
from checkpointing.store import Engine, Store
from checkpointing.tokens import Tokens

NO_URL = (
    "not a journal URL: it is malformed before its path. One is sqlite:///claims.db or postgresql://user@host/database"
)
SHORTEST_LEASE = timedelta(milliseconds=100)


class Journal:
    """
    One store and what is kept in it.

    Attributes:
        saver: LangGraph's checkpointer.
        effects: The effect ledger.
        artefacts: Documents, by digest.
        tokens, sessions: Who may come in, and who is logged in.
        logins: How often somebody failed to, and how long they wait.
        listing: Pages of runs, approvals, effects and entries of the audit.
        notices: What people are to be told of.
        idempotency: Which requests of the HTTP API were answered, and how.
        closing: Set when it is being closed, for what waits in the background.
        found: How far its tables were when it was opened.
    """

    def __init__(self, store: Store, *, lease: timedelta, artefacts: str) -> None:
        """Use *store*, whose schema is up to date."""
        self.store = store
        self.closing = threading.Event()
        self.found = Standing()
        self._background: list[threading.Thread] = []
        self.bridge = Bridge()
        self.saver = make_saver(store, self.bridge)
        self.leases = Leases(store, lease=lease)
        self.runs = Runs(store)
        self.listing = Listing(store)
        self.idempotency = Idempotency(store)
        self.effects = Ledger(store)
        self.approvals = Approvals(store)
        self.notices = Notices(store)
        self.tokens = Tokens(store)
        self.sessions = Sessions(store)
        self.logins = Logins(store)
        self.audit = Audit(
            store,
            (
                runs_witness(self.runs),
                effects_witness(self.effects),
                approvals_witness(self.approvals),
                tokens_witness(self.tokens),
            ),
        )
        self.artefacts = Artefacts(artefacts)

    def in_background(self, work: Callable[[], None], *, name: str) -> None:
        """Do *work* in a thread of its own, which `close` waits for."""
        thread = threading.Thread(target=work, name=name)
        thread.start()
        self._background = [*filter(threading.Thread.is_alive, self._background), thread]

    def close(self) -> None:
        """Wait for the calls under way and give every connection back."""
        self.closing.set()
        self.bridge.close()
        while self._background:
            self._background.pop().join()
        self.store.close()

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


def open_journal(
    url: str,
    *,
    clock: Callable[[], datetime] | None = None,
    lease: timedelta = timedelta(seconds=30),
    artefacts: str | None = None,
    schema: str | None = None,
    connections: int = CONNECTIONS,
) -> Journal:
    """
    Open the journal at *url*, with its schema brought up to date.

    Args:
        url: `sqlite:///claims.db` (relative), `sqlite:////var/lib/claims.db` (absolute) or `postgresql://user@host/database`.
        clock: where every time comes from, leases too; by default the database's time on Postgres and the system's on SQLite.
        lease: how long a worker that died keeps others from its thread.
        artefacts: the folder for documents, a path or any URL fsspec knows; by default beside the SQLite file, or
            `counterfoil-artefacts` in the working directory.
        schema: on Postgres, the schema its tables are in, made where it is missing; by default the role's own. One database may have several journals.
        connections: on Postgres, how many connections it has at most.

    Raises:
        JournalUnusable: a malformed URL, no server, a wrong password, a file that is not a database, a folder that cannot be written, tables that
            are not up to date and that this role may not change.
        SchemaTooNew: the journal was migrated by a newer Counterfoil.
    """
    if lease < SHORTEST_LEASE:
        raise JournalUnusable(f"a lease of {lease} is too short to be renewed; give it at least {SHORTEST_LEASE}")
    engine, beside = _engine(url, lease=lease, schema=schema, connections=connections)
    store = Store(engine, clock or system_clock, own_clock=clock is not None)
    try:
        journal = Journal(store, lease=lease, artefacts=artefacts or str(beside))
        journal.found = bring_up_to_date(store, known_tables(dispatches=store.dialect.dispatches), journal.saver.setup)
    except BaseException:
        store.close()
        raise
    return journal


def look_at(url: str, *, schema: str | None = None) -> tuple[Standing, Standing]:
    """Return how far the tables at *url* are and how far this code would bring them; nothing is written; errors as `open_journal`."""
    engine, _ = _engine(url, lease=SHORTEST_LEASE, schema=schema, connections=1)
    store = Store(engine, system_clock, own_clock=False)
    try:
        return found(store), known_tables(dispatches=store.dialect.dispatches)
    finally:
        store.close()


def known_tables(*, dispatches: bool) -> Standing:
    """Return how far this code brings a journal's tables, with or without a queue beside them."""
    return known(newest_tables(dispatches=dispatches), dispatches=dispatches)


def _engine(url: str, *, lease: timedelta, schema: str | None, connections: int) -> tuple[Engine, Path]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise JournalUnusable(NO_URL) from error  # the error's own words may hold a part of the password
    if parts.scheme in ("postgres", "postgresql"):
        engine = PostgresEngine(url, lease=lease, schema=schema, connections=connections)
        return engine, Path("counterfoil-artefacts")
    if parts.scheme != "sqlite":
        raise JournalUnusable(
            f"a journal URL begins with sqlite:/// or postgresql://, not with {parts.scheme or 'nothing'!r}, "
            "as in sqlite:///claims.db"
        )
    if schema is not None:
        raise JournalUnusable(
            f"a SQLite file has no schemas, so none can be {schema!r}; COUNTERFOIL_SCHEMA is for Postgres"
        )
    name = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not name or name == ":memory:" or "\0" in name:
        raise JournalUnusable("a SQLite journal is a file: sqlite:///claims.db, or sqlite:////absolute/path/claims.db")
    path = Path(name)
    return SqliteEngine(path), path.with_name(path.name + ".artefacts")
