"""
Failed logins: whoever fails again and again from one place has to wait, longer each time.

    attempt ──▶ counted as failed ──the secret was right──▶ forgotten
                      └──────────── nothing was heard ────▶ stands: after `FREE` in a row every further one waits 1 s, 2 s, 4 s, … `LONGEST`

An attempt is counted before the secret is looked at, in one conditional write. So of many that come at once no more get through than of
those that come one after the other, in whatever process; and a process that dies in between has counted it.
The row says nothing of who was tried: whether a name is known cannot be found out by it.
"""

from __future__ import annotations

from datetime import timedelta

from checkpointing.clock import duration_ms
from checkpointing.hashed import digest_of
from checkpointing.store import Store
from checkpointing.text import storable

FREE = 5
"""How many in a row may fail before anybody has to wait: slips of the pen, and several people behind one address."""
FIRST = timedelta(seconds=1)
DOUBLINGS = 9
"""How often the wait doubles: up to 8 minutes 32 seconds."""
LONGEST_PLACE = 255
"""Characters; of what is longer the digest is kept, because an index of Postgres has no room for more."""
FORGOTTEN_AFTER = timedelta(hours=1)
"""How long after its wait a place that kept quiet is as good as new."""

# The wait in ms is 0 up to the FREE-th failure, then FIRST doubled for each further one. `1 << n` is read by both engines.
ATTEMPT = """
insert into login_failures (place, failures, until_ms) values (:place, 1, :now)
on conflict (place) do update set
    failures = case when login_failures.until_ms + cast(:forgotten_ms as bigint) < :now then 1 else login_failures.failures + 1 end,
    until_ms = :now + case
        when login_failures.until_ms + cast(:forgotten_ms as bigint) < :now or login_failures.failures + 1 < :free then 0
        when login_failures.failures + 1 - :free >= :doublings then cast(:first_ms as bigint) << cast(:doublings as integer)
        else cast(:first_ms as bigint) << cast(login_failures.failures + 1 - :free as integer) end
where login_failures.until_ms <= :now
returning failures
"""
WAIT = "select until_ms - :now as wait_ms from login_failures where place = :place and until_ms > :now"
FORGET = "delete from login_failures where place = :place"
OLD = """
select place from login_failures where until_ms + cast(:forgotten_ms as bigint) < :now order by until_ms limit 100 for update skip locked
"""


class Logins:
    """The `login_failures` table."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def attempt(self, place: str) -> timedelta:
        """
        Count an attempt from *place* and return zero; or count nothing and return how long there is to wait before the next one.

        *place* is whatever attempts are counted by: a network address (`service/who/places.py`), a name. Call `succeeded` if the secret was
        right, and nothing if it was wrong.
        """
        with self.store.transaction("login.attempt") as tx:
            counted = tx.one(
                ATTEMPT,
                place=_kept(place),
                free=FREE,
                doublings=DOUBLINGS,
                first_ms=duration_ms(FIRST),
                forgotten_ms=duration_ms(FORGOTTEN_AFTER),
            )
            if counted:
                return timedelta()
            waiting = tx.one(WAIT, place=_kept(place))
        # The wait may have ended between the two statements; this attempt was not counted all the same.
        return timedelta(milliseconds=waiting["wait_ms"] if waiting else 1)

    def succeeded(self, place: str) -> None:
        """Forget what failed from *place*, and some of what is old; the attempt that was right is not counted either."""
        with self.store.transaction("login.succeed") as tx:
            tx.all(FORGET, place=_kept(place))
            for row in tx.all(OLD, forgotten_ms=duration_ms(FORGOTTEN_AFTER)):
                tx.all(FORGET, place=row["place"])


def _kept(place: str) -> str:
    return storable(place) if len(place) <= LONGEST_PLACE else digest_of(place)
