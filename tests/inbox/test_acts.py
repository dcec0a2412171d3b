"""What operators and others do beyond deciding: a page says what will happen, and its form does it, as whoever is logged in."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from checkpointing.errors import CounterfoilError
from graph import approve, thread
from tests.inbox.pages import Pages
from tests.support.bank import Bank
from tests.support.clock import MovingClock


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """The bank that the inbox's graph pays at."""
    return Bank(tmp_path / "bank")


def dead_one(inbox: Pages, bank: Bank) -> str:
    """Let a run die: the bank refuses its payment."""
    asked = inbox.ask("dead")
    bank.become("refusing")
    with suppress(CounterfoilError):
        inbox.graph.invoke(approve(asked), thread(asked.thread_id, principal="ben"))
    bank.become("")
    return asked.thread_id


def doubtful_one(inbox: Pages, bank: Bank, clock: MovingClock) -> str:
    """Let a run come to a payment of which nobody knows whether it happened, and return its key."""
    asked = inbox.ask("doubt")
    bank.become("silent")
    with suppress(CounterfoilError):
        inbox.graph.invoke(approve(asked), thread(asked.thread_id, principal="ben"))
    bank.become("")
    clock.move(timedelta(days=2))
    with suppress(CounterfoilError):
        inbox.graph.invoke(None, thread(asked.thread_id))
    [record] = inbox.journal.effects.list(state="in_doubt")
    return record.key


def test_a_dead_letter_is_redriven_with_a_reason(inbox: Pages, bank: Bank) -> None:
    thread_id = dead_one(inbox, bank)
    visit = inbox.visit("olga", "operator")
    visit.get("/operate")
    assert "no such payee" in visit.said
    visit.get(f"/act/redrive?of={thread_id}")
    assert "No effect is repeated" in visit.said
    visit.post("/act/redrive", of=thread_id, reason=" ")
    assert (visit.status, inbox.journal.runs.get(thread_id).state) == (422, "dead")

    visit.post("/act/redrive", of=thread_id, reason="the account is open")
    assert visit.address == f"/run?id={thread_id}"
    assert inbox.journal.runs.get(thread_id).state == "admitted"
    [entry] = [one for one in inbox.journal.audit.entries(thread_id) if one.event == "run.redrive"]
    assert (entry.actor, entry.body["reason"]) == ("olga", "the account is open")
    visit.post("/act/redrive", of=thread_id, reason="again")
    assert (visit.status, "only a dead letter is redriven" in visit.said) == (422, True)


def test_a_dead_letter_is_given_up_for_good(inbox: Pages, bank: Bank) -> None:
    thread_id = dead_one(inbox, bank)
    visit = inbox.visit("olga", "operator")
    visit.get(f"/act/discard?of={thread_id}")
    assert "This cannot be undone" in visit.said
    visit.post("/act/discard", of=thread_id, reason="paid by cheque")

    run = inbox.journal.runs.get(thread_id)
    assert (run.discarded_by, run.discarded_why) == ("olga", "paid by cheque")
    assert "By olga: paid by cheque" in visit.said


@pytest.mark.parametrize("happened", [True, False])
def test_an_effect_in_doubt_is_resolved(inbox: Pages, bank: Bank, clock: MovingClock, *, happened: bool) -> None:
    key = doubtful_one(inbox, bank, clock)
    visit = inbox.visit("olga", "operator")
    visit.get("/operate")
    assert f"/act/resolve?of={quote(key)}" in visit.last
    visit.get(f"/act/resolve?of={quote(key, safe='')}")
    visit.post("/act/resolve", of=key)
    assert (visit.status, "Say whether it happened" in visit.said) == (422, True)
    visit.post("/act/resolve", of=key, happened="yes", outcome="not json")
    assert (visit.status, "not json" in visit.last) == (422, True)

    visit.post("/act/resolve", of=key, happened="yes" if happened else "no", outcome='{"id": "pay_1"}')
    record = inbox.journal.effects.get(key)
    assert (record.state, record.outcome) == (("settled", {"id": "pay_1"}) if happened else ("released", None))


def test_more_time_and_other_people(inbox: Pages) -> None:
    asked = inbox.ask()
    assert asked.expires_at is not None
    visit = inbox.visit("olga", "operator")
    visit.get(f"/act/extend?of={asked.id}")
    visit.post("/act/extend", of=asked.id, hours="99999")
    assert visit.status == 422
    visit.post("/act/extend", of=asked.id, hours="24", reason="holidays")
    assert inbox.journal.approvals.get(asked.id).expires_at == asked.expires_at + timedelta(days=1)

    visit.get(f"/act/reassign?of={asked.id}")
    visit.post("/act/reassign", of=asked.id, people=" , ")
    assert visit.status == 422
    visit.post("/act/reassign", of=asked.id, people="ben, group:seniors")
    assert inbox.journal.approvals.get(asked.id).approvers == ("ben", "group:seniors")
    assert "the group seniors" in visit.said


def test_an_approver_who_is_not_asked_gives_nobody_more_time(inbox: Pages) -> None:
    asked = inbox.ask()
    inbox.journal.approvals.reassign(asked.id, ["ben"], principal="ada")
    visit = inbox.visit("ada", "approver")
    visit.get(f"/act/extend?of={asked.id}")
    visit.post("/act/extend", of=asked.id, hours="24")

    assert visit.status == 403
    assert inbox.journal.approvals.get(asked.id).expires_at == asked.expires_at


def test_whoever_submitted_it_takes_their_question_back(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("clerk", "submitter")
    visit.get(f"/approvals/{asked.id}")
    assert f"/act/withdraw?of={asked.id}" in visit.last
    visit.get(f"/act/withdraw?of={asked.id}")
    visit.post("/act/withdraw", of=asked.id, reason="wrong claim")

    withdrawn = inbox.journal.approvals.get(asked.id)
    assert (withdrawn.state, withdrawn.withdrawn_by, withdrawn.withdrawn_why) == ("withdrawn", "clerk", "wrong claim")
    assert "You took it back" in visit.said


def test_what_somebody_may_not_see_they_may_not_act_on(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("carl", "submitter")
    visit.get("/runs")
    visit.post("/act/withdraw", of=asked.id, reason="not mine")
    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (404, "pending")

    visit.post("/act/redrive", of=asked.thread_id, reason="not mine")
    assert visit.status == 403


def test_what_is_not_there_is_said_so(inbox: Pages) -> None:
    visit = inbox.visit("olga", "operator", "approver", "submitter")
    for name in ("resume", "redrive", "discard", "resolve", "extend", "reassign", "withdraw"):
        for of in ("", "nothing", "claim-0042\0", "../..", "x" * 5000):
            visit.get(f"/act/{name}?of={quote(of, safe='')}")
            assert visit.status == 404, (name, of[:20])
            visit.post(f"/act/{name}", of=of, reason="because", hours="24", people="ben", happened="no")
            assert visit.status == 404, (name, of[:20])
