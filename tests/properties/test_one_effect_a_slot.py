"""
Any graph, any history: every effect is executed once, every approval is decided once, and the record is whole.

Every event is a process of its own, killed by SIGKILL where the plan says. A failing plan is printed; `replayed` runs it again.
Examples: `COUNTERFOIL_EXAMPLES`, more in `just properties`.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, note, settings

from tests.properties.plans import Plan, plans
from tests.properties.world import THREAD, World, act, as_json, expected, finish
from tests.support.processes import start

EXAMPLES = {"sqlite": 60, "postgres": 20}


def examples(engine: str) -> int:
    return int(os.environ.get("COUNTERFOIL_EXAMPLES", EXAMPLES[engine]))


def replayed(url: str, plan: Plan) -> None:
    """Let everything the plan says happen to a new run, bring it to its end, and check it."""
    with TemporaryDirectory(prefix="counterfoil-") as folder:
        world = World(url, Path(folder), plan)
        for event in plan.events:
            if event.kind == "later":
                world.later(60 * event.choice)
                continue
            sides = ("left", "right") if event.kind == "two" else ("left",)
            processes = [start(act, world, event, side) for side in sides]
            for process in processes:
                process.join(60)
                assert process.exitcode in (0, -signal.SIGKILL), f"{event} ended with {process.exitcode}"
            check_so_far(world)
        check_the_end(world)


def check_so_far(world: World) -> None:
    """Nothing was executed twice, whatever happened."""
    executed = Counter(call["claim_id"] for call in world.bank.executed)
    assert all(count == 1 for count in executed.values()), f"executed twice: {executed}"


def check_the_end(world: World) -> None:
    with finish(world) as journal:
        run = journal.runs.get(THREAD)
        assert (run.state, run.error) == ("done", None)
        executed = [call["claim_id"] for call in world.bank.executed if not call["claim_id"].startswith("model")]
        assert sorted(executed) == expected(world.plan)
        records = journal.effects.list(thread_id=THREAD)
        assert {record.state for record in records} <= {"settled"}
        decided = Counter(e.subject for e in journal.audit.entries(THREAD) if e.event == "approval.decide")
        assert all(count == 1 for count in decided.values())
        used = [record.approval_id for record in records if record.approval_id]
        assert len(used) == len(set(used))
        assert list(journal.audit.verify()) == []


def test_any_graph_and_any_history(engine: str, new_url: Callable[[], str]) -> None:
    @settings(
        max_examples=examples(engine),
        deadline=None,
        derandomize="COUNTERFOIL_EXAMPLES" not in os.environ,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
        print_blob=True,
    )
    @given(plans)
    def check(plan: Plan) -> None:
        note(as_json(plan))
        replayed(new_url(), plan)

    check()
