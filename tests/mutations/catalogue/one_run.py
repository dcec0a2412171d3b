"""One run a thread: its input, its attempts, its end."""

from __future__ import annotations

from tests.mutations.catalogue.places import (
    ADVANCE,
    ATTACK,
    DEAD,
    DOUBT,
    LIFE,
    RESOLVING,
    RUNS,
    SNAPSHOTS,
    TABLE,
    WAKING,
)
from tests.mutations.workshop import Mutation

ONE_RUN = (
    Mutation(
        "other input is refused",
        RUNS,
        "elif current.input_digest == wanted.digest:",
        "elif current:",
        (TABLE + "test_other_input_under_a_used_thread_is_refused",),
        "A second job is taken for a repeat of the first, and dropped.",
    ),
    Mutation(
        "a turn begins when the last one is done",
        RUNS,
        "where thread_id = :thread_id and state = 'done'\nreturning",
        "where thread_id = :thread_id\nreturning",
        (TABLE + "test_a_turn_begins_when_the_last_one_is_done",),
        "A new turn discards the one under way.",
    ),
    Mutation(
        "a dead letter is not started",
        RUNS,
        "where thread_id = :thread_id and state in ('admitted', 'running', 'parked')\nreturning",
        "where thread_id = :thread_id\nreturning",
        (LIFE + "test_who_comes_after_the_end_finds_it", LIFE + "test_who_comes_after_the_death_starts_nothing"),
        "A call that waited for the lease starts a run that has ended meanwhile.",
    ),
    Mutation(
        "a dead letter is redriven, and nothing else",
        RUNS,
        "where thread_id = :thread_id and state = 'dead' returning",
        "where thread_id = :thread_id returning",
        (LIFE + "test_a_redrive_goes_on_from_the_last_checkpoint",),
        "A run at work is sent to the start.",
    ),
    Mutation(
        "a decision wakes a parked run only",
        WAKING,
        "where thread_id = :thread_id and state = 'parked' returning",
        "where thread_id = :thread_id returning",
        (LIFE + "test_a_decision_does_not_raise_the_dead",),
        "A dead letter runs again, and nobody said so.",
    ),
    Mutation(
        "the nodes of a parked run are there",
        ADVANCE,
        "            check_nodes_exist(self.compiled, config)\n",
        "            pass\n",
        (LIFE + "test_a_run_parked_at_a_node_that_is_gone_is_refused_and_untouched",),
        "A deploy drops a decision: LangGraph leaves out a node it does not know.",
    ),
    Mutation(
        "the turn is the run's",
        ADVANCE,
        "        check_turn(head, thread_id, turn=run.turn, started=run.head is not None)\n",
        "",
        (ATTACK + "test_a_forged_turn_is_refused",),
        "A head that somebody wrote by hand passes for the run's.",
    ),
    Mutation(
        "the head is looked at as it was written",
        SNAPSHOTS,
        '"checkpoint_id": head} if head else',
        '"checkpoint_id": head} if not config else',
        (DEAD + "test_what_no_reducer_takes_ends_as_a_dead_letter",),
        "A run whose reducer raises is never started again, costs no attempt and never ends.",
    ),
    Mutation(
        "a graph carries its own runs",
        ADVANCE,
        "if run.graph != self.name:",
        "if run is None:",
        (ATTACK + "test_a_named_graph_carries_its_own_runs_only",),
        "Another graph's nodes run on this one's state.",
    ),
    Mutation(
        "the attempts are counted",
        ADVANCE,
        "elif run.attempts >= self.attempts:",
        "elif run is None:",
        (LIFE + "test_a_node_that_always_fails_ends_as_a_dead_letter",),
        "A run that always fails is tried for ever.",
    ),
    Mutation(
        "the outcome wakes who waits for it",
        RESOLVING,
        "    woken = wake_waiting(tx, record.key)\n",
        "    woken: set[str] = set()\n",
        (DOUBT + "test_without_keys_and_look_up_a_person_decides_that_it_happened",),
        "A run that waits for a person waits for ever.",
    ),
)
