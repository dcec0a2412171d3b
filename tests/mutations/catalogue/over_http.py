"""What comes over HTTP: one request is answered once, nobody sees or does what is not theirs, and nothing that was sent is told to anybody else."""

from __future__ import annotations

from tests.mutations.workshop import Mutation

KEYS = "checkpointing/idempotency.py"
LISTING = "checkpointing/listing.py"
HTTP = "service/http/"
KEY_TESTS = "tests/checkpointing/test_idempotency.py::"
LIST_TESTS = "tests/checkpointing/test_listing.py::"
TESTS = "tests/service/http/"

OVER_HTTP = (
    Mutation(
        "a key is one request's",
        KEYS,
        'if found["fingerprint"] != fingerprint:',
        "if not found:",
        (TESTS + "test_submitting.py::test_a_key_that_was_used_for_another_request_is_refused",),
        "A payment is answered with what another one was answered.",
    ),
    Mutation(
        "a request under way keeps its key",
        KEYS,
        "and started_ms <= :now - :patience_ms",
        "and started_ms <= :now and :patience_ms > 0",
        (KEY_TESTS + "test_a_request_under_way_keeps_its_key_for_a_while_and_not_for_ever",),
        "Two requests at once are both carried out.",
    ),
    Mutation(
        "who was taken over from keeps no answer",
        KEYS,
        "update idempotency_keys set status = :status, answer = :answer\nwhere principal = :principal and key = :key and status is null and started_ms = :started_ms",
        "update idempotency_keys set status = :status, answer = :answer\nwhere principal = :principal and key = :key and status is null and :started_ms > 0",
        (KEY_TESTS + "test_who_was_taken_over_from_neither_answers_nor_frees_the_key",),
        "A server that stood still answers for the one that carried the request out.",
    ),
    Mutation(
        "an operation that nobody entered is open to nobody",
        HTTP + "callers.py",
        "RIGHTS.get(f\"{request.method} {request.scope['route'].path}\", ())",
        "RIGHTS.get(f\"{request.method} {request.scope['route'].path}\", tuple(visitor.roles))",
        (TESTS + "test_roles.py::test_a_route_that_nobody_entered_in_the_table_is_open_to_nobody",),
        "A new route is everybody's until somebody thinks of it.",
    ),
    Mutation(
        "another site's page changes nothing",
        HTTP + "callers.py",
        'request.headers.get("sec-fetch-site") in FOREIGN',
        'request.headers.get("sec-fetch-site") in ()',
        (TESTS + "test_injections.py::test_a_form_of_another_page_decides_nothing",),
        "Behind a proxy that signs whoever is logged in, any page acts as its reader.",
    ),
    Mutation(
        "a run is shown to whom it concerns",
        LISTING,
        "return self.asking and has_asked()",
        "return self.asking",
        (TESTS + "test_operating.py::test_an_approver_sees_the_run_behind_an_approval_and_no_other",),
        "An approver reads every claim.",
    ),
    Mutation(
        "a submitter lists their own runs",
        LISTING,
        'OWN = "submitted_by = :principal and"',
        'OWN = "submitted_by >= :principal and"',
        (LIST_TESTS + "test_only_runs_that_somebody_may_see_are_listed",),
        "A submitter reads the claims of others.",
    ),
    Mutation(
        "a thread is its submitter's",
        HTTP + "claims.py",
        "if run.submitted_by != visitor.name:",
        "if run.submitted_by is None:",
        (TESTS + "test_submitting.py::test_a_thread_of_somebody_else_is_taken_and_says_nothing_of_itself",),
        "Whoever sends the same input reads somebody else's run.",
    ),
    Mutation(
        "a lost answer is only one's own",
        "service/deciding.py",
        "approval.decided_by == visitor.name and all(",
        "all(",
        (TESTS + "test_approvals.py::test_a_request_whose_server_died_first_hears_of_whoever_decided_meanwhile",),
        "Somebody believes that they decided what somebody else did.",
    ),
    Mutation(
        "a fault is logged without its words",
        HTTP + "around.py",
        "kind=type(fault).__name__,",
        "kind=repr(fault),",
        (TESTS + "test_problems.py::test_a_fault_is_answered_without_its_words_and_logged_without_them",),
        "A claimant's data stand in the log.",
    ),
    Mutation(
        "the log has the route and not the path",
        HTTP + "around.py",
        "        route=route,",
        '        route=scope["path"],',
        (TESTS + "test_problems.py::test_the_log_says_who_asked_for_what_route_and_nothing_they_sent",),
        "Whatever somebody writes into a path stands in the log.",
    ),
    Mutation(
        "a slash inside an id stays inside it",
        HTTP + "segments.py",
        'decoded.replace("/", INSIDE)',
        "decoded",
        (TESTS + "test_injections.py::test_a_slash_in_a_name_is_part_of_it",),
        "A thread with a slash in its name is out of reach, or another place is reached.",
    ),
    Mutation(
        "a key that is not known is refused",
        HTTP + "asks.py",
        'extra="forbid", hide',
        'extra="ignore", hide',
        (TESTS + "test_problems.py::test_a_wrong_value_is_told_by_its_field_and_not_repeated",),
        "Whoever sends a principal believes that it counts.",
    ),
    Mutation(
        "a stream that broke goes on where it ended",
        HTTP + "events.py",
        "return not self.entries and self.run.state in RESTS",
        "return self.run.state in RESTS",
        (TESTS + "test_events.py::test_a_stream_that_broke_goes_on_after_the_last_event_its_client_has",),
        "Whoever comes back is told that nothing happened.",
    ),
)
