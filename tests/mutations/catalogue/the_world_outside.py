"""Who comes in from outside, and what receivers say about what they executed."""

from __future__ import annotations

from tests.mutations.catalogue.places import ADOPTED, AT_THE_DOOR, COMPARED, DOOR, RECONCILE, RECONCILING, WAKING
from tests.mutations.workshop import Mutation

THE_WORLD_OUTSIDE = (
    Mutation(
        "who submitted does not decide",
        WAKING,
        "and event = 'server.submit'",
        "and event = 'nothing'",
        (AT_THE_DOOR + "test_who_submitted_on_a_server_does_not_decide_elsewhere_either",),
        "Somebody approves their own claim.",
    ),
    Mutation(
        "a client speaks for nobody else",
        DOOR,
        "if key.startswith(OURS)",
        'if key.startswith("/")',
        (AT_THE_DOOR + "test_what_a_run_may_not_bring_is_named",),
        "A request names the principal, or the lease, under which it acts.",
    ),
    Mutation(
        "what a worker executes is not adopted",
        RECONCILING,
        'if row["state"] == "claimed" and is_live(',
        'if row["state"] == "" and is_live(',
        (ADOPTED + "test_a_claim_is_not_adopted_while_its_owner_lives_and_then_is",),
        "A repair settles what its worker is about to settle.",
    ),
    Mutation(
        "adopting replaces no outcome",
        RECONCILING,
        "where key = :key and state in ('claimed', 'in_doubt', 'released') returning *",
        "where key = :key returning *",
        (ADOPTED + "test_an_outcome_is_never_replaced",),
        "A repair writes over the outcome that a run went on with.",
    ),
    Mutation(
        "what is young is not judged",
        RECONCILE,
        "return abs(self.journal.store.now_ms() - to_ms(at)) < duration_ms(self.grace)",
        "return False",
        (COMPARED + "test_what_was_settled_just_now_is_not_missing_yet",),
        "What the receiver does not list yet is reported as missing.",
    ),
    Mutation(
        "an execution of something else is not adopted",
        RECONCILE,
        'if finding["differences"]:\n        return finding',
        "if not finding:\n        return finding",
        (COMPARED + "test_an_execution_of_something_else_is_not_adopted",),
        "A run goes on as if what was asked for had been paid.",
    ),
)
