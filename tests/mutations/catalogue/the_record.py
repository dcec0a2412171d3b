"""The record: what the audit would not notice otherwise."""

from __future__ import annotations

from tests.mutations.catalogue.places import APPROVALS, AUDIT, AUDIT_TESTS, DECIDERS, DOUBT, MEETING_TESTS, RESOLVING
from tests.mutations.workshop import Mutation

THE_RECORD = (
    Mutation(
        "every transition is in the audit",
        AUDIT,
        "    tx.all(APPEND, **link)\n",
        "",
        (AUDIT_TESTS + "test_a_whole_record",),
        "The record has a hole.",
        in_peace=False,  # the audit of any run is verified
    ),
    Mutation(
        "a decision is in the audit",
        APPROVALS,
        'audit(tx, approval, "approval.decide", actor=who.name, **decided_body(approval))',
        "pass",
        (AUDIT_TESTS + "test_a_whole_record", DECIDERS + "test_two_approvers_have_one_winner_and_one_payment"),
        "Nobody can tell who approved.",
        in_peace=False,  # the audit of any run is verified
    ),
    Mutation(
        "an outcome is in the audit",
        RESOLVING,
        "        if thread_id == record.thread_id:\n            audit(tx, record, event",
        "        if thread_id == record:\n            audit(tx, record, event",
        (DOUBT + "test_without_keys_and_look_up_a_person_decides_that_it_happened",),
        "Nobody can tell what came of a payment.",
        in_peace=False,  # the audit of any run is verified
    ),
    Mutation(
        "two entries get two places",
        AUDIT,
        "where thread_id = :thread_id for update",
        "where thread_id = :thread_id",
        (MEETING_TESTS + "test_two_transitions_of_a_thread_get_two_places_in_its_audit[postgres]",),
        "Two transitions at once get one place, and one of them fails.",
    ),
    Mutation(
        "a changed entry is found",
        AUDIT,
        "if entry.hash != _hash(entry, before):",
        "if entry.hash is None:",
        (AUDIT_TESTS + "test_tampering_is_found",),
        "The record can be rewritten.",
    ),
    Mutation(
        "an entry is bound to the one before",
        AUDIT,
        'link["hash"] = sha256({**link, "before": head["hash"]})',
        'link["hash"] = sha256({**link, "before": ""})',
        (AUDIT_TESTS + "test_a_whole_record",),
        "An entry can be exchanged.",
        in_peace=False,  # the audit of any run is verified
    ),
)
