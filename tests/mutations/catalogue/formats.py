"""The formats of decisions that are not our own: what an answer must say before it is recorded, and what an agent must be told to ask."""

from __future__ import annotations

from tests.mutations.catalogue.places import (
    AGENT_INBOX,
    AGENT_INBOX_TESTS,
    AGENTS_ANSWERED,
    AGENTS_ASK,
    BATCHES,
    INBOX_FORMAT,
    INBOX_FORMAT_TESTS,
    POLICIES,
    POLICIES_TESTS,
    QUESTIONS,
    RETURNED,
    RETURNED_TESTS,
)
from tests.mutations.workshop import Mutation

FORMATS = (
    Mutation(
        "about several calls nothing goes by position",
        BATCHES,
        "len(given) == len(requests) == 1:",
        "len(given) == len(requests):",
        (AGENTS_ANSWERED + "test_a_list_by_position_about_several_calls_is_refused_and_shows_both_forms",),
        "Decisions that were put together in another order run the call that was rejected.",
    ),
    Mutation(
        "keyed answers are for no other call",
        BATCHES,
        "if unknown := [one for one in given if one not in ids]:",
        "if unknown := [one for one in given if one not in given]:",
        (AGENTS_ANSWERED + "test_keyed_answers_are_for_every_call_and_no_other",),
        "An answer to another question is taken for this one.",
    ),
    Mutation(
        "of equal calls of which some are asked about the ids tell nothing",
        BATCHES,
        "if len(twins) != len(equal):",
        "if len(twins) < len(equal):",
        (AGENTS_ANSWERED + "test_of_equal_calls_of_which_one_is_reviewed_the_ids_tell_nothing",),
        "The decision is taken under the id of a call that nobody was asked about.",
    ),
    Mutation(
        "an id that two calls have tells nothing",
        BATCHES,
        "if not found or every.count(found) > 1:",
        "if not found:",
        (AGENTS_ANSWERED + "test_ids_that_two_calls_have_tell_nothing",),
        "One decision is taken for two calls.",
    ),
    Mutation(
        "an edit stays with its call",
        BATCHES,
        "    _check_edits_stay(requests, kept, calls, what)\n",
        "",
        (AGENTS_ANSWERED + "test_ids_that_two_calls_have_tell_nothing",),
        "The middleware replaces another call by what the approver made of this one.",
    ),
    Mutation(
        "echoes of equal calls decide the same",
        BATCHES,
        "    _check_twins_agree(requests, placed, what)\n",
        "",
        (AGENTS_ANSWERED + "test_echoes_of_equal_calls_decide_the_same_about_all_of_them",),
        "Which of two equal calls is executed is left to chance.",
    ),
    Mutation(
        "an edit switches no tool",
        BATCHES,
        'if edited.get("name") != request["name"]:',
        'if edited.get("name") == 0:',
        (AGENTS_ASK + "test_an_edit_into_another_tool_is_refused_before_it_is_recorded",),
        "An approver makes of a call one that may only be rejected.",
    ),
    Mutation(
        "every answer is looked at before the first is recorded",
        QUESTIONS,
        """    decisions = [(row.id, taken(row, value)) for row, value in chosen]
    journal.approvals.decide_all(decisions, principal=principal)
""",
        """    for row, value in chosen:
        journal.approvals.decide(row.id, taken(row, value), principal=principal)
""",
        (AGENTS_ASK + "test_one_bad_answer_of_two_executes_nothing_and_is_not_recorded",),
        "One of two tools has run when the other's answer is refused.",
    ),
    Mutation(
        "a policy is for a tool that there is",
        POLICIES,
        "if name not in tools:",
        "if not name:",
        (POLICIES_TESTS + "test_an_agent_with_a_misspelt_policy_does_not_start",),
        "The tool that was meant runs without anybody being asked.",
    ),
    Mutation(
        "a policy has no option that is not read",
        POLICIES,
        "if unknown := sorted(policy.keys() - set(OPTIONS)):",
        "if unknown := sorted(policy.keys() - policy.keys()):",
        (POLICIES_TESTS + "test_an_agent_with_a_misspelt_policy_does_not_start",),
        "What the policy was to depend on is not looked at.",
    ),
    Mutation(
        "Agent Inbox's accept means our own record",
        INBOX_FORMAT,
        'if kind != "edit":',
        'if kind != "edit" and args is None:',
        (
            AGENT_INBOX_TESTS + "test_an_accept_approves_what_was_shown_whatever_came_back_with_it",
            INBOX_FORMAT_TESTS + "test_the_node_gets_the_answer_on_what_it_asked_itself",
        ),
        "What a browser sent back is taken for what was approved.",
    ),
    Mutation(
        "an answer of Agent Inbox's names no other action",
        INBOX_FORMAT,
        'if isinstance(args, Mapping) and args.get("action") != shown["action"]:',
        'if isinstance(args, Mapping) and args.get("action") == 0:',
        (INBOX_FORMAT_TESTS + "test_what_does_not_fit_is_not_recorded",),
        "An answer to another question is taken for this one.",
    ),
    Mutation(
        "Agent Inbox answers what its config allows",
        INBOX_FORMAT,
        'if request["config"].get(key) is True]',
        "if key]",
        (
            INBOX_FORMAT_TESTS + "test_a_type_that_the_config_does_not_allow_is_not_recorded",
            AGENT_INBOX_TESTS + "test_one_call_under_langchains_review_in_its_form",
        ),
        "Somebody edits what could only be accepted or ignored.",
    ),
    Mutation(
        "an accept carries the hash of what was shown",
        AGENT_INBOX,
        'return {**_ours(response), "payload_hash": approval.payload_hash}',
        "return _ours(response)",
        (AGENT_INBOX_TESTS + "test_an_answer_to_what_was_shown_approves_nothing_that_came_in_its_place",),
        "A payload that nobody has seen is approved.",
    ),
    Mutation(
        "text that leaves doubt is no number",
        RETURNED,
        'if WHOLE.fullmatch(text) and text != "-0":',
        'if text.strip().lstrip("+-").replace("_", "").isdecimal():',
        (RETURNED_TESTS + "test_what_leaves_doubt_is_refused",),
        "An amount is paid that the approver did not write.",
    ),
    Mutation(
        "an edit keeps the keys that were shown",
        RETURNED,
        "if given.keys() != shown.keys():",
        "if not given.keys() >= shown.keys():",
        (INBOX_FORMAT_TESTS + "test_what_does_not_fit_is_not_recorded",),
        "A key that was never asked about reaches the tool.",
    ),
)
