"""An agent's tools: what stands between a model and a second payment, and what the model is told."""

from __future__ import annotations

from tests.mutations.catalogue.places import (
    AGENTS_ASK,
    AGENTS_PAY,
    BUBBLES,
    EFFECT_TOOLS,
    ORPHANS,
    RECORDED_MODEL,
    REVIEWS,
    UNSWALLOWED,
)
from tests.mutations.workshop import Mutation

AGENTS = (
    Mutation(
        "an error of a tool passes every handler",
        UNSWALLOWED,
        "raise _bubbling(error).with_traceback(error.__traceback__) from error",
        "raise",
        (AGENTS_PAY + "test_a_tool_node_that_tells_the_model_every_error_does_not_tell_it_of_doubt",),
        "The model hears that a payment failed of which nobody knows, and pays again.",
    ),
    Mutation(
        "an interrupt passes as it is",
        UNSWALLOWED,
        "    except GraphBubbleUp:\n        raise\n",
        "",
        (BUBBLES + "test_an_interrupt_is_not_touched",),
        "A question loses what it asks.",
    ),
    Mutation(
        "an edit changes no tool",
        EFFECT_TOOLS,
        "if call.named != self.name:",
        "if call.named is None:",
        (AGENTS_ASK + "test_an_edit_into_another_tool_that_was_recorded_elsewhere_executes_nothing",),
        "One tool is executed in the name of another.",
    ),
    Mutation(
        "a decision binds the tool",
        EFFECT_TOOLS,
        "if (against := self._reviewed(call, values)) is not None:",
        "if (against := self._reviewed(call, values)) == 0:",
        (AGENTS_ASK + "test_a_rejected_call_is_not_executed_when_the_review_changes_its_mind",),
        "A call that a person rejected is executed.",
    ),
    Mutation(
        "a refusal leaves nothing behind",
        EFFECT_TOOLS,
        "            self._check_free(asked.slot)\n",
        "",
        (AGENTS_PAY + "test_a_tool_node_takes_no_refusal_for_proof_either",),
        "The model is told that nothing happened, after a call that may have.",
    ),
    Mutation(
        "a no is no yes",
        REVIEWS,
        "if kind not in LET:",
        'if kind not in (*LET, "reject"):',
        (AGENTS_ASK + "test_a_rejected_call_is_not_executed_when_the_review_changes_its_mind",),
        "A call that a person rejected is executed.",
    ),
    Mutation(
        "the latest review counts",
        REVIEWS,
        "newest = max(row.opened_at for row in rows)",
        "newest = min(row.opened_at for row in rows)",
        (AGENTS_ASK + "test_a_call_that_was_rejected_may_be_approved_when_the_model_makes_it_again",),
        "What a person decided later has no effect.",
    ),
    Mutation(
        "an error that the ledger contradicts is not told",
        ORPHANS,
        'if record.state == "released":\n        return told',
        'if record.state != "settled":\n        return told',
        (
            AGENTS_PAY + "test_doubt_that_a_handler_swallowed_parks_the_run_before_the_model_hears_of_it",
            AGENTS_PAY + "test_an_unknown_error_that_a_handler_swallowed_is_a_dead_letter",
        ),
        "The model is told that a payment failed of which nobody knows, and pays again.",
    ),
    Mutation(
        "a call without an answer is told its outcome",
        ORPHANS,
        'if record.state == "settled":\n        return outcome(',
        'if record.state == "":\n        return outcome(',
        (AGENTS_PAY + "test_a_call_left_without_an_answer_is_told_its_recorded_outcome",),
        "The model does not learn that it has paid.",
    ),
    Mutation(
        "a model that answered is not asked again",
        RECORDED_MODEL,
        'if found is None or found.state != "settled":',
        "if found is None or found:",
        (AGENTS_PAY + "test_a_model_that_answered_is_not_asked_again",),
        "A re-run asks the model again, which may plan the payment in other words.",
    ),
    Mutation(
        "the second of two calls with one id is refused",
        RECORDED_MODEL,
        'if second and call["name"] in effects:',
        "if second and not effects:",
        (AGENTS_PAY + "test_two_calls_with_one_id_in_one_message_pay_once",),
        "One call that stands twice in a message pays twice.",
    ),
)
