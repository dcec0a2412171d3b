"""The picture of a run: what it says, that it says nothing of its own, and that no text of a claimant becomes markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Approval, EffectRecord, Entry, Journal, Run
from checkpointing.admissions import RunState
from checkpointing.effects import EffectState
from checkpointing.questions import ApprovalState
from graph import DurableGraph, DurableState, approve, durable, thread
from graph.axis import WIDTH, pauses
from graph.drawing import COLOURS, draw, draw_step, duration, what_changed
from graph.timeline import StepView, Timeline, timeline
from nodes import approval_node, effect_node
from tests.support.bank import Bank

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'&"


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def ms(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1000)


def run(**other: Any) -> Run:
    values: dict[str, Any] = {
        "thread_id": "claim-0042", "state": "done", "reason": None, "waits_for": None, "error": None, "input_digest": "", "submission": "",
        "turn": 1, "attempts": 0, "resumes": 0, "head": None, "submitted_by": None, "graph": "", "created_at": at(0), "updated_at": at(0),
        "tries": 0, "steps": 0, "admitted_at": at(0), "due_at": None,
    }  # fmt: skip
    return Run(**{**values, **other})


def step(number: int, node: str, began: float, ended: float | None, **other: Any) -> StepView:
    values: dict[str, Any] = {
        "before": {}, "update": {}, "attempts": 0, "waited": timedelta(0), "effects": (), "approvals": (), "checkpoint_id": f"c{number}",
    }  # fmt: skip
    ends = None if ended is None else at(ended)
    return StepView(
        **{
            "number": number,
            "nodes": (node,),
            "began": at(began),
            "ended": ends,
            **values,
            **other,
        }
    )


def entry(seq: int, seconds: float, event: str, actor: str = "worker-a", **body: Any) -> Entry:
    return Entry("claim-0042", seq, ms(seconds), event, actor, "claim-0042", body, "")


def paid(**other: Any) -> EffectRecord:
    values: dict[str, Any] = {
        "key": "claim-0042:pay.0:pay:46a7c56576cccfa1", "effect": "pay", "slot": "once|pay|0042", "thread_id": "claim-0042", "step": "pay.0",
        "arguments": {}, "digest": "46a7c56576cccfa1", "state": "settled", "outcome": {"paid": 1}, "approval_id": None, "calls": 1,
        "replays": 0, "cost": 0, "claimed_at": at(1), "settled_at": at(2),
    }  # fmt: skip
    return EffectRecord(**{**values, **other})


def asked(**other: Any) -> Approval:
    values: dict[str, Any] = {
        "id": "apr_1", "thread_id": "claim-0042", "node": "approve", "name": "payout", "visit": 0, "round": 0, "payload": {}, "payload_hash": "",
        "allowed": ("approve",), "approvers": None, "edits": None, "on_expiry": "reject", "state": "pending", "decision": None, "decided_by": None,
        "decided_at": None, "opened_at": at(0), "expires_at": None, "interrupt_id": None,
    }  # fmt: skip
    return Approval(**{**values, **other})


TWO_DAYS = 172_800.0


def waited() -> Timeline:
    """A run that asked at once, waited for two days, and was paid by another worker."""
    effect = paid(settled_at=at(TWO_DAYS + 3))
    return Timeline(
        run(),
        (
            step(0, "approve", 0, TWO_DAYS + 2, attempts=1),
            step(1, "pay", TWO_DAYS + 2, TWO_DAYS + 4, effects=(effect,)),
        ),
        (
            entry(1, 0, "run.start", head=""),
            entry(2, 1, "run.park"),
            entry(3, TWO_DAYS + 1, "approval.decide", "adjuster-17"),
            entry(4, TWO_DAYS + 1, "run.start", "worker-b", head="c0"),
            entry(5, TWO_DAYS + 4, "run.finish", "worker-b"),
        ),
    )


def bars(html: str) -> list[float]:
    """The widths of the bars, in the order they are drawn."""
    return [float(width) for width in re.findall(r'<rect x="[\d.]+" y="6" width="([\d.]+)"', html)]


def test_a_long_wait_is_compressed_and_carries_its_length() -> None:
    html = draw(waited()).html

    assert ">2 d</text>" in html
    assert "waited 2 d" in html
    assert max(bars(html)) > WIDTH / 4


def test_no_bar_leaves_the_axis() -> None:
    for x, width in re.findall(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"', draw(waited()).html):
        assert 0 <= float(x) <= WIDTH
        assert float(x) + float(width) <= WIDTH + 1


def test_a_worker_that_died_leaves_a_pause_until_the_next_one_starts() -> None:
    line = Timeline(
        run(resumes=1),
        (step(0, "pay", 0, 40, attempts=1),),
        (
            entry(1, 0, "run.start", head="c0"),
            entry(2, 1, "effect.claim"),
            entry(3, 31, "run.start", "worker-b", head="c0"),
            entry(4, 40, "run.finish", "worker-b"),
        ),
    )

    [pause] = pauses(line)
    assert (pause.kind, pause.began, pause.ended) == ("died", at(1), at(31))
    assert "worker died, nobody for 30 s" in draw(line).html
    assert "taken over from a dead worker once" in draw(line).html


def test_another_pass_of_the_same_worker_is_no_pause() -> None:
    entries = (entry(1, 0, "run.start", head=""), entry(2, 5, "run.start", head="c0"))

    assert pauses(Timeline(run(), (step(0, "approve", 0, 9),), entries)) == []


def test_a_parked_run_waits_until_now() -> None:
    line = Timeline(
        run(state="parked", reason="approval"),
        (step(0, "approve", 0, None, approvals=(asked(),)),),
        (entry(1, 0, "run.start", head=""), entry(2, 1, "run.park")),
    )
    html = draw(line).html

    assert "is parked (approval)" in html
    assert "payout: waits for a decision" in html
    assert "parked since 2026-03-01 12:00:01 UTC" in html


def test_a_run_without_a_step_is_drawn_too() -> None:
    assert "Nothing has run yet." in draw(Timeline(run(state="admitted"), (), ())).html


def test_two_clocks_that_disagree_are_drawn_all_the_same() -> None:
    """The store's clock may be a test's; checkpoints always have the host's."""
    entries = (
        entry(1, 9e6, "run.start", head=""),
        entry(2, 9e6, "run.park"),
        entry(3, 9e6 + 5, "run.start", "worker-b", head="c0"),
    )

    assert "<svg" in draw(Timeline(run(), (step(0, "approve", 0, 1),), entries)).html


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ({"state": "decided", "decision": {"type": "edit"}, "decided_by": "adjuster-17"}, "payout: edit by adjuster-17"),
        ({"state": "expired", "decision": {"type": "reject"}}, "payout: expired, which counts as reject"),
        ({"state": "superseded"}, "payout: superseded, the payload changed"),
    ],
)  # fmt: skip
def test_an_approval_says_who_decided(decision: dict[str, Any], said: str) -> None:
    line = Timeline(run(), (step(0, "approve", 0, 1, approvals=(asked(**decision),)),), ())

    assert said in draw(line).html


def test_an_effect_says_what_became_of_it_and_under_which_key() -> None:
    effects = (paid(calls=2, replays=3), paid(key="k2", outcome={"declined": "account closed"}))
    html = draw(Timeline(run(), (step(0, "pay", 0, 3, effects=effects),), ())).html

    assert "pay settled <i>2 calls, one key, 3 from the record</i>" in html
    assert "<code>claim-0042:pay.0:pay:46a7c56576cccfa1</code>" in html
    assert "pay declined" in html


def test_every_state_has_its_colour() -> None:
    states = {*get_args(EffectState), *get_args(ApprovalState), *get_args(RunState), "declined"}

    assert states - COLOURS.keys() == {"admitted", "running"}


class Tags(HTMLParser):
    """Collects every element and attribute of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_no_value_becomes_markup() -> None:
    hostile = StepView(
        number=0, nodes=(HOSTILE,), before={HOSTILE: HOSTILE, "claim": {"text": HOSTILE}}, update={HOSTILE: [HOSTILE], "notice": HOSTILE},
        began=at(0), ended=at(1), attempts=1, waited=timedelta(0), effects=(paid(key=HOSTILE, effect=HOSTILE),),
        approvals=(asked(id=HOSTILE, name=HOSTILE, state="decided", decision={"type": HOSTILE}, decided_by=HOSTILE),), checkpoint_id=HOSTILE,
    )  # fmt: skip
    whole = Timeline(
        run(thread_id=HOSTILE, submitted_by=HOSTILE, error=HOSTILE, reason=HOSTILE, state="parked"),
        (hostile,),
        (),
    )
    for html in (draw(whole).html, draw_step(hostile).html):
        found = Tags()
        found.feed(html)

        assert "script" not in found.tags
        assert "alert(1)" in html
        assert found.attributes <= {
            "class", "style", "width", "height", "role", "x", "y", "rx", "fill", "opacity", "x1", "x2", "y1", "y2", "stroke", "stroke-width",
            "stroke-dasharray", "text-anchor", "font-size", "cx", "cy", "r",
        }  # fmt: skip


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    html = draw(waited()).html

    assert not re.search(r"https?:|url\(|@import|<link|<script|on\w+=", html)


def test_a_step_shows_the_state_it_started_from_and_what_it_changed() -> None:
    one = step(
        3,
        "compute_payout",
        0,
        1,
        before={"claim_id": "0042", "payout": 1, "turn": 1},
        update={"payout": 184_000},
    )
    html = draw_step(one).html

    assert "step 3: compute_payout" in html
    assert "<td><pre>1</pre></td><td><pre>184000</pre></td>" in html
    assert "<td><code>claim_id</code></td><td><pre>&quot;0042&quot;</pre></td><td><i>unchanged</i></td>" in html  # fmt: skip
    assert "turn" not in html


def test_a_long_value_is_cut_and_says_so() -> None:
    html = draw_step(step(0, "load", 0, 1, update={"text": "x" * 3000})).html

    assert "more characters" in html
    assert len(html) < 6000


def test_a_value_that_is_not_json_is_shown_as_python_writes_it() -> None:
    assert "Decimal" in draw_step(step(0, "load", 0, 1, update={"sum": _Decimal()})).html


class _Decimal:
    def __repr__(self) -> str:
        return "Decimal('1.0')"


def test_what_is_written_again_as_it_was_is_no_change() -> None:
    assert what_changed({"claim": {"status": "open"}}, {"claim": {"status": "open"}}) == []


def test_a_first_value_is_a_change_even_if_it_is_none() -> None:
    [change] = what_changed({}, {"payment": None})

    assert (change.key, change.before, change.after) == ("payment", None, None)


def test_receipts_and_approvals_are_compared_entry_by_entry() -> None:
    before = {"effects": {"assess.0": {"state": "succeeded"}}}
    changes = what_changed(before, {"effects": {"assess.0": {"state": "succeeded"}, "pay.0": {}}})

    assert [(change.key, change.before) for change in changes] == [("effects[pay.0]", None)]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 ms"), (0.04, "40 ms"), (0.8, "0.8 s"), (9.96, "10.0 s"), (42, "42 s"), (250, "4 min 10 s"), (TWO_DAYS, "2 d"), (255_600, "2 d 23 h")],
)  # fmt: skip
def test_durations_have_two_units_at_most(seconds: float, said: str) -> None:
    assert duration(timedelta(seconds=seconds)) == said


class State(DurableState):
    claim_id: str
    amount: int
    payment: dict[str, Any]


def small(journal: Journal, bank: Bank) -> DurableGraph:
    builder = StateGraph(State)
    asks = approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"], "amount": s["amount"]})  # fmt: skip
    builder.add_node("approve", asks)
    builder.add_node("pay", effect_node(bank.effect(), journal, into="payment", approval="payout"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    return durable(builder, journal)


def test_a_real_run_is_drawn_before_and_after_its_decision(journal: Journal, tmp_path: Path) -> None:
    graph = small(journal, Bank(tmp_path / "bank"))
    graph.invoke({"claim_id": "0042", "amount": 184_000}, thread("claim-0042"))
    assert "waits for a decision" in draw(timeline(graph, "claim-0042")).html
    [pending] = journal.approvals.pending()
    graph.invoke(approve(pending), thread("claim-0042", principal="adjuster-17"))
    line = timeline(graph, "claim-0042")
    drawing = draw(line)

    assert drawing._repr_html_() == drawing.html
    assert "payout: approve by adjuster-17" in drawing.html
    assert journal.effects.list()[0].key in drawing.html
    assert "effects[pay.0]" in draw_step(line.steps[1]).html


def test_a_drawing_says_what_it_shows_and_not_its_html() -> None:
    assert repr(draw(waited())) == "<Drawing of claim-0042, steps: 2>"
    assert repr(draw_step(waited().steps[1])) == "<Drawing of step 1: pay>"


def test_drawing_the_same_timeline_gives_the_same_text() -> None:
    assert draw(waited()) == draw(waited())
