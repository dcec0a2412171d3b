"""
Many threads made of one: the rows of a thread that really ran so far, copied in the database, under new names.

Every table that has the thread's rows is copied, ours and LangGraph's, in one statement a table; in a text the thread's id and those of its approvals and notices
are replaced, so keys, slots and leases are the copy's own. A copy is what the code would have written, but for three things: the hashes of its audit are
those of the original, its approvals' ids are not derived from its own, and all were written at one moment.
"""

from __future__ import annotations

from checkpointing.store import Store, Tx

NAMED = """
select id from approvals where thread_id = :thread_id union all select id from notices where thread_id = :thread_id order by id
"""
SQLITE_COLUMNS = """
select tables.name as place, columns.name as name, lower(columns.type) as type
from sqlite_schema tables join pragma_table_info(tables.name) columns where tables.type = 'table'
"""
POSTGRES_COLUMNS = """
select table_name as place, column_name as name, data_type as type
from information_schema.columns where table_schema = current_schema() order by ordinal_position
"""
NUMBERS = (
    "with recursive numbers (n) as (select cast(:first as bigint) union all select n + 1 from numbers where n < :last)"
)


def copy_of(thread_id: str, number: int) -> str:
    """Return what the copy of this *number* of a thread, or of one of its approvals, is called."""
    return f"{thread_id}-{number}"


def copy_thread(store: Store, thread_id: str, *, first: int, last: int) -> None:
    """
    Copy everything there is of the thread, as the copies *first* to *last*, and have the database look at its tables anew.

    The thread's id must be a text that stands nowhere else in its rows.
    """
    with store.transaction("copies.make") as tx:
        named = [str(row["id"]) for row in tx.all(NAMED, thread_id=thread_id)]
        for place, columns in sorted(_columns(tx).items()):
            key = "thread_id" if "thread_id" in columns else "name" if place == "leases" else None
            if key:
                given = thread_id if key == "thread_id" else f"thread:{thread_id}"
                tx.all(_statement(place, columns, key, [thread_id, *named]), given=given, first=first, last=last)
    if store.dialect.name == "postgres":  # which does so by itself after a while; SQLite never does
        with store.reading() as tx:
            tx.all("analyze")


def _columns(tx: Tx) -> dict[str, dict[str, str]]:
    """Return the name and type of every column, by table."""
    found: dict[str, dict[str, str]] = {}
    for row in tx.all(SQLITE_COLUMNS if tx.dialect.name == "sqlite" else POSTGRES_COLUMNS):
        found.setdefault(str(row["place"]), {})[str(row["name"])] = str(row["type"])
    return found


def _statement(place: str, columns: dict[str, str], key: str, names: list[str]) -> str:
    copied = ", ".join(_copied(name, kind, names) for name, kind in columns.items())
    return (
        f"insert into {place} ({', '.join(columns)}) {NUMBERS}"  # noqa: S608  # names of the schema and of the copier's own thread
        f" select {copied} from {place} cross join numbers where {key} = :given"
    )


def _copied(name: str, kind: str, names: list[str]) -> str:
    """Return what the copy has in a column: a text with the original's names replaced, anything else as it is."""
    if kind != "text":
        return name
    for one in names:
        name = f"replace({name}, '{one}', '{one}-' || cast(n as text))"
    return name
