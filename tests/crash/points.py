"""
Every point at which a process is killed: for each durable write and each call to a receiver, the stories that pass it.

A new one is one line here; until it stands here, `test_every_point.py` fails. Each is killed before and after.
"""

from __future__ import annotations

from checkpointing.migrate import migrations

WRITES = {
    "schema.begin": ("opening",),
    "schema.migrate": ("opening",),
    "saver.setup": ("opening",),
    "run.admit": ("submitting",),
    "lease.take": ("submitting", "approving"),
    "run.start": ("submitting", "approving"),
    "checkpoint.put": ("submitting", "approving"),
    "checkpoint.put_writes": ("submitting", "approving"),
    "effect.claim": ("submitting", "approving"),
    "effect.settle": ("submitting", "approving"),
    "approval.open": ("submitting",),
    "run.park": ("submitting",),
    "approval.decide": ("approving",),
    "run.finish": ("approving",),
    "lease.renew": ("working slowly",),
    "lease.give_back": ("without a run",),
    "effect.doubt": ("no answer",),
    "run.stand_by": ("no answer",),
    "effect.release": ("wrong request",),
    "run.die": ("wrong request",),
    "run.redrive": ("redriving",),
    "effect.resolve": ("found out",),
    "approval.expire": ("overdue",),
    "checkpoint.delete": ("forgetting",),
    "artefact.makedirs": ("keeping a document",),
    "artefact.pipe_file": ("keeping a document",),
    "artefact.mv": ("keeping a document",),
}
"""The transactions of the store, LangGraph's own tables, and what the folder of artefacts is told; with the stories that make them."""

CALLS = {
    "claims.file": ("filing",),
    "claims.claim": ("filing", "paying"),
    "claims.policy": ("filing", "paying"),
    "assess": ("filing",),
    "pay": ("paying",),
    "pay look-up": ("looking up",),
    "notify": ("paying",),
}
"""The claims agent's calls to its receivers: the reads by the client's methods, effects and their look-ups by their names."""

ELSEWHERE = {
    "schema.queue": "tests/migrations/test_killed_while_migrating.py::test_killed_while_the_queue_was_made",
    "schema.grant": "tests/migrations/test_killed_while_migrating.py::test_killed_while_a_role_was_let_in",
    "effect.reissue": "tests/nodes/test_reissue.py::test_a_reissue_that_was_killed_goes_on_under_the_key_it_had_begun",
    "effect.adopt": "tests/service/test_reconcile.py::test_a_repair_that_was_killed_is_finished_by_the_next",
    "execution.record": "tests/service/test_restored_journal.py::test_a_repair_that_was_killed_is_finished_by_the_next",
    "approval.withdraw": "tests/crash/test_kill_second_thoughts.py::test_killed_while_a_question_was_withdrawn",
    "approval.amend": "tests/crash/test_kill_people.py::test_killed_while_a_question_was_extended",
    "run.discard": "tests/crash/test_kill_dead_letters.py::test_killed_while_a_dead_letter_was_given_up",
    "effect.conflict": "tests/crash/test_kill_second_thoughts.py::test_killed_while_a_payment_in_other_words_was_refused",
    "queue.sweep": "tests/crash/test_kill_workers.py::test_killed_while_sweeping",
    "run.postpone": "tests/crash/test_kill_workers.py::test_killed_while_a_run_was_put_off",
    "token.add": "tests/crash/test_kill_who_comes_in.py::test_killed_while_a_token_was_added",
    "token.revoke": "tests/crash/test_kill_who_comes_in.py::test_killed_while_a_token_was_revoked",
    "session.begin": "tests/crash/test_kill_who_comes_in.py::test_killed_while_a_session_began",
    "session.end": "tests/crash/test_kill_who_comes_in.py::test_killed_while_a_session_ended",
    "login.attempt": "tests/crash/test_kill_who_comes_in.py::test_killed_while_an_attempt_was_counted",
    "login.succeed": "tests/crash/test_kill_who_comes_in.py::test_killed_while_failures_were_forgotten",
    "notice.told": "tests/crash/test_kill_notices.py::test_killed_while_a_notice_was_posted",
    "notice.forget": "tests/crash/test_kill_notices.py::test_killed_while_old_notes_were_forgotten",
    "key.begin": "tests/crash/test_kill_requests.py::test_killed_while_a_request_began",
    "key.finish": "tests/crash/test_kill_requests.py::test_killed_while_an_answer_was_kept",
    "key.forget": "tests/crash/test_kill_requests.py::test_killed_while_a_key_was_freed",
    "run.nudge": "tests/crash/test_kill_requests.py::test_killed_while_a_run_was_nudged",
    "server.submit": "tests/crash/test_kill_second_thoughts.py::test_killed_while_a_server_kept_who_submitted",
}
"""Writes that are no part of a claim's way, and the test that kills before and after each."""

CALLS_ELSEWHERE = {
    "open_ticket": "tests/crash/test_ticket_and_message.py::test_killed_around_the_execution",
    "open_ticket look-up": "tests/crash/test_ticket_and_message.py::test_killed_around_the_look_up_after_a_kill",
    "post_message": "tests/crash/test_ticket_and_message.py::test_killed_around_the_execution",
    "post_message look-up": "tests/crash/test_ticket_and_message.py::test_killed_around_the_look_up_after_a_kill",
    "webhook": "tests/crash/test_kill_notices.py::test_killed_around_a_call",
    "mail": "tests/crash/test_kill_notices.py::test_killed_around_a_mail",
}
"""Calls of tools that are no part of the claims agent, and the test that kills around each."""

READS_FOR_A_REPORT = "`counterfoil reconcile` reads it into a scratch file of its own, which a death takes along; the ledger has no claim for it"
EXEMPT = dict.fromkeys(("pay.listing", "pay.retrieval", "notify.listing", "notify.retrieval"), READS_FOR_A_REPORT)
"""
Calls to receivers that nothing is killed around, and why: they change nothing there, and nothing here depends on whether they were answered.

What is done with the answers is `effect.adopt`, which has its crash.
"""

"""Which passing of the point the process dies at, where it is not the first only."""


NTH = {"schema.migrate": range(1, len(migrations()) + 1)}
"""Which passing of the point the process dies at, where it is not the first only."""


def calls() -> list[tuple[str, str]]:
    """Return every case of a call: the story and the point."""
    return [
        (story, f"{side} call {name}")
        for name, passing in CALLS.items()
        for story in passing
        for side in ("before", "after")
    ]


def cases(*stories: str) -> list[tuple[str, str, int]]:
    """Return the cases of these stories: the story, the point, and at which passing of it."""
    return [
        (story, f"{side} {name}", nth)
        for name, passing in WRITES.items()
        for story in passing
        if story in stories
        for nth in NTH.get(name, (1,))
        for side in ("before", "after")
    ]
