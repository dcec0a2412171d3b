"""
The state machine: Hypothesis draws a graph and one event after the other, and the model is checked after each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.properties.history import POINTS, RIVALS, STANDS, Crash, Event, Part
from tests.properties.receiver import MOODS
from tests.properties.script import memory_folder, written
from tests.properties.story import Story

NewUrl = Callable[[Path], str]
"""Makes the URL of an empty journal, in the example's folder where it is a file."""

MINUTE, HOURS, DAY = 60, 10_000, 90_000
BACK = -5
"""Times in seconds that no sum of which is within a few seconds of a receiver's day."""

parts = st.builds(
    Part,
    st.sampled_from(["chain", "both", "loop", "fan", "sub"]),
    st.integers(1, 3),
    st.sampled_from(["none", "lasting", "rejects", "approves"]),
    st.sampled_from(["keyed", "keyed", "looked_up", "asked"]),
)
crashes = st.one_of(
    st.none(),
    st.builds(
        Crash,
        st.sampled_from(POINTS),
        st.sampled_from([1, 1, 1, 2, 3]),
        st.sampled_from([MINUTE, MINUTE, MINUTE, 0, DAY]),
    ),
)
standing = st.builds(Crash, st.sampled_from(STANDS), st.sampled_from([1, 1, 2, 3]))
rivals = st.one_of(st.none(), st.builds(Crash, st.sampled_from(RIVALS), st.sampled_from([1, 1, 2])))
STEPS = 10
choices = st.integers(0, 40)
amounts = st.integers(5, 7)


class Machine(RuleBasedStateMachine):
    """Any graph, any history."""

    engine: str
    new_url: NewUrl
    fault: str | None = None

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.open = ExitStack()
        self.story: Story | None = None
        self.broken = False
        self.parts: list[Part] = []

    @initialize(chain=st.lists(parts, min_size=1, max_size=3), crash=crashes)
    def begin(self, chain: list[Part], crash: Crash | None) -> None:
        """Draw the graph, and submit."""
        folder = self.open.enter_context(memory_folder())
        self.parts = chain
        self.story = Story(type(self).new_url(folder), folder, chain, fault=self.fault)
        self.open.callback(self.story.close)
        self.carries_keys = all(part.receiver == "keyed" for part in chain)
        self.tell(Event("submit", crash=crash))

    @rule(crash=crashes)
    def submit(self, crash: Crash | None) -> None:
        """Submit the same input again."""
        self.tell(Event("submit", crash=crash))

    @rule()
    def submit_other(self) -> None:
        """Submit other input under the same thread."""
        self.tell(Event("submit_other"))

    @rule(crash=crashes)
    def nudge(self, crash: Crash | None) -> None:
        """Advance."""
        self.tell(Event("nudge", crash=crash))

    @rule(what=st.sampled_from(["approve", "approve", "edit", "reject"]), choice=choices, amount=amounts, crash=crashes)
    def decide(self, what: str, choice: int, amount: int, crash: Crash | None) -> None:
        """Decide one of the pending questions."""
        self.tell(Event("decide", what, choice, amount, crash))

    @rule(what=st.sampled_from(["approve", "approve", "edit"]), choice=choices, amount=amounts, crash=crashes)
    def decide_more(self, what: str, choice: int, amount: int, crash: Crash | None) -> None:
        """Decide one of the pending questions, once more, because most of a history waits for that."""
        self.tell(Event("decide", what, choice, amount, crash))

    @rule(
        verb=st.sampled_from(["stale", "misread", "own"]), what=st.sampled_from(["approve", "reject"]), choice=choices
    )
    def decide_wrongly(self, verb: Any, what: str, choice: int) -> None:
        """Decide what is over, what was never shown, or one's own."""
        self.tell(Event(verb, what, choice))

    @rule(what=st.sampled_from(["approve", "reject"]), choice=choices, crash=crashes)
    def two(self, what: str, choice: int, crash: Crash | None) -> None:
        """Two decide the same question at once."""
        self.tell(Event("two", what, choice, crash=crash))

    @rule(choice=choices, crash=crashes)
    def travel(self, choice: int, crash: Crash | None) -> None:
        """Go on from an old checkpoint with LangGraph's own graph."""
        self.tell(Event("travel", choice=choice, crash=crash))

    @precondition(lambda self: all(part.shape != "fan" for part in self.parts))
    @rule(choice=choices, amount=amounts, crash=crashes)
    def rewrite(self, choice: int, amount: int, crash: Crash | None) -> None:
        """
        Change an old checkpoint by hand and go on from it.

        Not where something is sent: LangGraph lets the update of a checkpoint after a `Send` send all of it again, which is a new visit.
        """
        self.tell(Event("rewrite", "", choice, amount, crash))

    @rule(seconds=st.sampled_from([MINUTE, HOURS, DAY, BACK]))
    def later(self, seconds: int) -> None:
        """Move the clock."""
        self.tell(Event("later", choice=seconds))

    @rule(mood=st.sampled_from(MOODS))
    def mood(self, mood: str) -> None:
        """Put the receiver into a mood."""
        self.tell(Event("mood", mood))

    @rule(crash=crashes)
    def resolve(self, crash: Crash | None) -> None:
        """Say what became of what is in doubt."""
        self.tell(Event("resolve", crash=crash))

    @rule(crash=crashes)
    def redrive(self, crash: Crash | None) -> None:
        """Take a dead letter up again."""
        self.tell(Event("redrive", crash=crash))

    @rule(what=st.sampled_from(["submit", "decide"]), stands=standing, rival=rivals)
    def overtaken(self, what: str, stands: Crash, rival: Crash | None) -> None:
        """A worker stands still past its lease, is overtaken, and goes on."""
        self.tell(Event("overtaken", what, crash=stands, rival=rival))

    def tell(self, event: Event) -> None:
        """Tell one event, and leave a script if it breaks a promise."""
        assert self.story
        try:
            self.story.tell(event)
        except BaseException as error:
            self._leave_script(error)
            raise

    def teardown(self) -> None:
        """Tell the end, unless the story is broken already."""
        try:
            if self.story and not self.broken:
                self.story.end()
        except BaseException as error:
            self._leave_script(error)
            raise
        finally:
            self.open.close()

    def _leave_script(self, error: BaseException) -> None:
        self.broken = True
        assert self.story
        file = written(error, engine=self.engine, parts=self.parts, events=self.story.told, fault=self.fault)
        error.add_note(f"{file} tells this history again:\n\n{file.read_text()}")


def explore(
    engine: str, new_url: NewUrl, *, examples: int, fixed: int | None, fault: str | None = None, shrink: bool = True
) -> None:
    """
    Run the machine.

    Args:
        engine: what the journals are on, for the script.
        new_url: makes an empty journal for every example.
        examples: how many histories.
        fixed: a number for which they are always the same, or `None` for new ones.
        fault: a fault planted into the code under test.
        shrink: look for the shortest history that fails.
    """
    drawn = type("Drawn", (Machine,), {"engine": engine, "new_url": staticmethod(new_url), "fault": fault})
    drawing = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        print_blob=False,
    )
    run_state_machine_as_test(drawn if fixed is None else seed(fixed)(drawn), settings=drawing)
