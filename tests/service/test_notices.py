"""What happens to an approval is told of once to each place, however many workers look, and whatever the places answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing import Journal, Run, open_journal
from graph import DurableGraph, thread
from graph.backoff import Backoff
from service.notices.graph import ATTEMPTS, BACKOFF
from service.notices.patience import RESPITE
from service.notices.posting import BATCH, KEPT, Posting
from service.notices.routes import Routes
from tests.support.clock import MovingClock
from tests.support.consumer import SECRET, Consumer
from tests.support.mailbox import Mailbox
from tests.support.processes import until
from tests.support.races import FEW, Side, race
from tests.support.small_claim import THREAD, small_claim
from tests.support.telling import asking, carry_on, posting, tells
from tests.support.workers import a_worker
from tools.webhooks import endpoint

NOWHERE = "http://127.0.0.1:1/"
ROUNDS = FEW // 2


@pytest.fixture
def timed(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    """A journal whose time the test moves."""
    return opened(clock=clock)


def told_of(journal: Journal, hook: Consumer, count: int) -> list[str]:
    """Wait until so many messages have arrived and nothing is left to tell, and return what they tell of."""
    until(lambda: len(set(hook.ids)) >= count or None)
    until(lambda: not journal.notices.noted() or None)
    until(lambda: all(one.state == "done" for one in runs_of(journal)) or None)
    return hook.events


def runs_of(journal: Journal) -> list[Run]:
    """Return the runs that tell of something."""
    return [one for one in journal.runs.list() if one.graph == "notices"]


def ask(graph: DurableGraph, name: str = "claim-0042") -> None:
    graph.submit({"amount": 1}, thread(name))


def test_a_worker_tells_of_a_question_and_of_its_decision(
    url: str, journal: Journal, tmp_path: Path, hook: Consumer
) -> None:
    small_claim(journal, tmp_path).submit({"claim_id": "0042"}, thread(THREAD))
    with a_worker(tells, url, tmp_path, hook.url):
        assert told_of(journal, hook, 1) == ["approval.open"]
        [pending] = journal.approvals.pending(thread_id=THREAD)
        journal.approvals.decide(pending.id, {"type": "approve"}, principal="adjuster-17")
        assert told_of(journal, hook, 2) == ["approval.open", "approval.decide"]

    said, decided = (one.verified()["data"] for one in hook.sent)
    assert said == {
        "notice": said["notice"],
        "approval": pending.id,
        "name": "payout",
        "thread": THREAD,
        "tier": None,
        "expires_at": None,
        "decision": None,
        "url": f"https://inbox.example/approvals/{pending.id}",
    }
    assert decided == {**said, "notice": decided["notice"], "decision": "approve"}
    assert "adjuster-17" not in repr(hook.sent)


def test_a_question_that_nobody_answers_is_told_of_step_by_step_and_once(
    timed: Journal, clock: MovingClock, hook: Consumer, box: Mailbox
) -> None:
    """One warning, one escalation, one expiry; looking again and again in between changes nothing."""
    graph, notices = asking(timed), posting(timed, hook.url, box.url)
    ask(graph)
    for hours in (1, 35, 1, 10, 1, 1, 22, 1, 1, 48):
        carry_on(graph, notices)
        clock.move(timedelta(hours=hours))
    carry_on(graph, notices)

    told = ["approval.open", "approval.remind", "approval.escalate", "approval.expire"]
    assert hook.events == told
    assert len(hook.sent) == len(told)
    assert [one.verified()["data"]["tier"] for one in hook.sent] == ["adjusters", "adjusters", "heads", "heads"]
    assert hook.sent[-1].verified()["data"]["decision"] == "reject"
    assert [str(one["Subject"]) for one in box.messages] == [
        "Please decide: payout, claim-0042",
        "Reminder, please decide: payout, claim-0042",
        "Nobody has decided in time, please decide: payout, claim-0042",
        "Nobody has decided in time: payout, claim-0042",
    ]
    assert box.recipients == [["desk@carrier.example"]] * 2 + [["heads@carrier.example"]] * 2
    assert Counter(one.state for one in timed.runs.list()) == {"done": 1 + 2 * len(told)}


def test_the_outcome_is_told_once(timed: Journal, clock: MovingClock, hook: Consumer) -> None:
    graph, notices = asking(timed), posting(timed, hook.url)
    ask(graph)
    carry_on(graph, notices)
    clock.move(timedelta(hours=37))
    carry_on(graph, notices)
    [asked] = timed.approvals.pending()
    timed.approvals.extend(asked.id, timedelta(days=1), principal="ada")
    timed.approvals.reassign(asked.id, ["ann"], principal="ada")
    timed.approvals.decide(asked.id, {"type": "reject", "reason": "no"}, principal="ann")
    for _ in range(3):
        carry_on(graph, notices)
        clock.move(timedelta(days=2))

    assert sorted(hook.events) == [f"approval.{event}" for event in ("decide", "extend", "open", "reassign", "remind")]
    assert len(hook.sent) == 5


def test_a_mail_says_what_to_decide_until_when_and_where(timed: Journal, box: Mailbox) -> None:
    """Names from a graph or a claim stand in it as text, on one line."""
    graph = asking(timed, name="pay\u2028out\r\nBcc: eve@evil.example")
    ask(graph, "claim=?utf-8?q?=0d=0aBcc:_eve@evil.example?=")
    carry_on(graph, posting(timed, box.url))

    [asked], [message] = timed.approvals.pending(), box.messages
    name, claim = "pay out Bcc: eve@evil.example", "claim=?utf-8?q?=0d=0aBcc:_eve@evil.example?="
    assert message["Bcc"] is None
    assert message.get_content().splitlines() == [
        f"Please decide: {name}, {claim}.",
        "Asked as: adjusters.",
        "Time to decide: until 2026-03-03 12:00 UTC.",
        "",
        f"https://inbox.example/approvals/{asked.id}",
        "Opening the link decides nothing.",
    ]


def test_nobody_is_mailed_a_question_that_has_its_answer(timed: Journal, box: Mailbox, hook: Consumer) -> None:
    """What workers could not tell in time; a webhook has it all the same, because it tells what happened."""
    graph, notices = asking(timed), posting(timed, box.url, hook.url)
    graph.invoke({"amount": 1}, thread("claim-0042"))
    [asked] = timed.approvals.pending()
    timed.approvals.decide(asked.id, {"type": "approve"}, principal="ada")
    carry_on(graph, notices)

    assert [str(one["Subject"]) for one in box.messages] == ["Decided: payout, claim-0042"]
    assert sorted(hook.events) == ["approval.decide", "approval.open"]


def test_a_place_that_fails_is_tried_again_with_growing_waits_under_the_same_id(
    timed: Journal, clock: MovingClock, hook: Consumer
) -> None:
    waits = Backoff(first=timedelta(seconds=4), longest=timedelta(hours=2))
    graph, notices = asking(timed), posting(timed, hook.url, attempts=9, backoff=waits)
    hook.answers += [500, 503, 429]
    ask(graph)
    waited = []
    for _ in range(3):
        carry_on(graph, notices)
        [telling] = runs_of(timed)
        assert (telling.state, telling.error and telling.error.startswith("Unreachable")) == ("admitted", True)
        assert telling.due_at
        waited.append(telling.due_at - clock())
        clock.move(waited[-1])
    carry_on(graph, notices)

    assert runs_of(timed)[0].state == "done"
    assert hook.ids == [hook.ids[0]] * 4
    for number, wait in enumerate(waited):
        assert waits.first * 2**number / 2 <= wait <= waits.first * 2**number


def test_the_attempts_of_a_notice_last_about_a_day() -> None:
    longest = sum(
        (min(BACKOFF.first * 2**number, BACKOFF.longest) for number in range(ATTEMPTS - 1)), start=timedelta(0)
    )

    assert timedelta(hours=26) < longest < timedelta(hours=27)


def test_a_place_that_stays_away_is_a_dead_letter_and_redriven_when_it_is_back(
    timed: Journal, clock: MovingClock, hook: Consumer
) -> None:
    graph, notices = asking(timed), posting(timed, hook.url, attempts=3)
    hook.answers += [500] * 3
    ask(graph)
    for _ in range(4):
        carry_on(graph, notices)
        clock.move(timedelta(minutes=1))

    [dead] = timed.runs.dead()
    assert (dead.graph, dead.reason, len(hook.sent)) == ("notices", "attempts", 3)
    timed.runs.redrive(dead.thread_id, principal="operator-3")
    carry_on(graph, notices)

    assert timed.runs.dead() == ()
    assert hook.ids == [hook.ids[0]] * 4


@pytest.mark.parametrize(
    ("answer", "state", "reason"), [(404, "dead", "rejected"), (302, "dead", "rejected"), (410, "done", None)]
)
def test_a_refusal_is_not_tried_again(
    timed: Journal, hook: Consumer, answer: int, state: str, reason: str | None
) -> None:
    graph, notices = asking(timed), posting(timed, hook.url)
    hook.answers.append(answer)
    ask(graph)
    carry_on(graph, notices)

    assert [(one.state, one.reason) for one in runs_of(timed)] == [(state, reason)]
    assert len(hook.sent) == 1


def test_one_place_that_does_not_answer_keeps_no_other_from_hearing(
    timed: Journal, hook: Consumer, box: Mailbox
) -> None:
    graph, notices = asking(timed), posting(timed, NOWHERE, hook.url, box.url)
    ask(graph)
    carry_on(graph, notices)

    assert hook.events == ["approval.open"]
    assert len(box.raw) == 1
    assert Counter(one.state for one in runs_of(timed)) == {"done": 2, "admitted": 1}


def test_a_place_that_lets_calls_wait_is_left_alone_for_a_while(
    timed: Journal, clock: MovingClock, hook: Consumer
) -> None:
    """Or each of its messages would hold a worker's place until the timeout."""
    graph, notices = asking(timed), posting(timed, hook.url, timeout_s=0.3)
    hook.gate.clear()
    for number in range(5):
        ask(graph, f"claim-{number}")
    carry_on(graph, notices)
    assert len(hook.sent) == 1
    assert Counter((one.error or "").partition(" ")[0] for one in runs_of(timed)) == {"Unreachable:": 5}
    hook.gate.set()
    clock.move(RESPITE)
    carry_on(graph, notices)

    assert len(hook.sent) == 6
    assert {one.state for one in runs_of(timed)} == {"done"}


def test_a_place_that_left_the_settings_is_waited_for(timed: Journal, clock: MovingClock, hook: Consumer) -> None:
    """While settings change, one worker admits what another does not know yet."""
    graph, old, new = asking(timed), posting(timed), posting(timed, hook.url)
    ask(graph)
    carry_on(graph, Posting(timed, old.graph, Routes((endpoint(hook.url, [SECRET]),))))
    [telling] = runs_of(timed)
    assert "this worker has no endpoint" in (telling.error or "")
    clock.move(timedelta(minutes=1))
    carry_on(graph, new)

    assert hook.events == ["approval.open"]


def test_notes_that_cannot_be_told_keep_no_other_from_being_told(timed: Journal, hook: Consumer) -> None:
    """More of them than one look takes, and older than all others."""
    graph, notices = asking(timed), posting(timed, hook.url)
    with timed.store.transaction("test.note") as tx:
        for number in range(BATCH):
            tx.all(
                "insert into notices (id, thread_id, event, subject, body, at_ms) values (:id, 't', 'approval.open', 'a', '{}', 0)",
                id=f"ntc_{number:02}",
            )
    ask(graph)
    notices.look()
    carry_on(graph, notices)

    assert hook.events == ["approval.open"]
    assert len(timed.notices.noted()) == BATCH


@pytest.mark.parametrize(("answer", "base_url"), [(404, "https://inbox.example"), (204, "https://other.example")])
def test_what_was_admitted_before_a_crash_is_not_told_again_whatever_became_of_it(
    timed: Journal, hook: Consumer, answer: int, base_url: str
) -> None:
    """It was refused meanwhile, or the settings say it in other words."""
    graph, notices = asking(timed), posting(timed, hook.url)
    hook.answers.append(answer)
    graph.invoke({"amount": 1}, thread("claim-0042"))
    [notice] = timed.notices.noted()
    for message in notices._messages(notice):
        notices._admit(message)
    carry_on(graph, Posting(timed, notices.graph, Routes()))  # it dies before the note goes
    carry_on(graph, Posting(timed, notices.graph, Routes((endpoint(hook.url, [SECRET]),), base_url=base_url)))

    assert timed.notices.noted() == []
    assert len(hook.sent) == len(runs_of(timed)) == 1


def test_where_nobody_is_to_be_told_notes_go_when_they_are_old(timed: Journal, clock: MovingClock) -> None:
    graph, notices = asking(timed), posting(timed)
    ask(graph)
    carry_on(graph, notices)
    assert len(timed.notices.noted()) == 1, "another worker may have somebody to tell"
    clock.move(KEPT + timedelta(seconds=1))
    carry_on(graph, notices)

    assert timed.notices.noted() == []
    assert runs_of(timed) == []


def test_an_event_that_is_not_listed_is_told_to_nobody(timed: Journal, hook: Consumer) -> None:
    graph, base = asking(timed), posting(timed, hook.url)
    notices = Posting(timed, base.graph, Routes((endpoint(hook.url, [SECRET]),), webhook_events=("approval.decide",)))
    ask(graph)
    carry_on(graph, notices)

    assert timed.notices.noted() == []
    assert hook.sent == []


def racing(journal: Journal, folder: Path) -> DurableGraph:
    return asking(journal, tiers=())


def asks(graph: DurableGraph, number: int) -> str:
    graph.invoke({"amount": 1}, thread(f"claim-{number}"))
    return "asked"


def posts(graph: DurableGraph, number: int) -> str:
    [notice] = [one for one in graph.journal.notices.noted(limit=1000) if one.thread_id == f"claim-{number}"]
    return str(posting(graph.journal, NOWHERE)._posted(notice))


@pytest.mark.parametrize("meets", ["run.admit", "notice.told"])
def test_two_workers_that_post_at_once_admit_one_run_a_notice(url: str, tmp_path: Path, meets: str) -> None:
    side = Side(posts, meets=meets, prepare=asks)

    assert race(url, tmp_path, racing, side, side, rounds=ROUNDS) == [("True", "True")] * ROUNDS
    with open_journal(url) as journal:
        assert journal.notices.noted() == []
        assert len(runs_of(journal)) == ROUNDS
        assert {one.state for one in runs_of(journal)} == {"admitted"}
        assert list(journal.audit.verify()) == []
