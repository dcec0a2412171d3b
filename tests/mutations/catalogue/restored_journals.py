"""An older copy of the journal that was restored: what was executed since, and the fences that went back."""

from __future__ import annotations

from tests.mutations.catalogue.places import (
    LEASES,
    LEASES_TESTS,
    LEDGER,
    RECONCILE,
    RESTORED,
    RESTORED_JOURNAL,
    RESTORED_TESTS,
)
from tests.mutations.workshop import Mutation

NUMBER_GIVEN_AGAIN = (
    LEASES_TESTS + "test_a_holder_from_before_a_restore_has_a_number_that_is_given_out_again_and_nothing_else"
)
SUCCESSORS_CLAIM = LEASES_TESTS + "test_a_holder_from_before_a_restore_says_nothing_of_its_successors_claim"

RESTORED_JOURNALS = (
    Mutation(
        "what was executed before a restore answers the first claim",
        LEDGER,
        "executed = answer_for(tx, asked, released)",
        "executed = None",
        (
            RESTORED_TESTS + "test_the_request_that_was_sent_is_answered_as_a_replay",
            RESTORED_JOURNAL + "test_a_payment_made_after_the_copy_is_made_once",
        ),
        "A payment that the restored ledger lost is made again once its key is forgotten.",
    ),
    Mutation(
        "another payment for the same identity is a conflict",
        RESTORED,
        "    if found:\n        raise EffectConflict(",
        "    if found is None:\n        raise EffectConflict(",
        (RESTORED_TESTS + "test_anything_else_for_the_same_identity_is_a_conflict_and_not_called",),
        "A claim that was paid before the restore is paid another amount after it.",
    ),
    Mutation(
        "only the same arguments are answered by another thread's payment",
        RESTORED,
        "        if _is_the_same(asked, one):\n",
        "        if one:\n",
        (RESTORED_TESTS + "test_anything_else_for_the_same_identity_is_a_conflict_and_not_called",),
        "Whoever approved one amount is told that it was paid, and another one was.",
    ),
    Mutation(
        "a payment that was taken back answers for nothing",
        RESTORED,
        "where effect = :effect and taken_back = 0",
        "where effect = :effect and taken_back < 2",
        (RESTORED_TESTS + "test_what_was_taken_back_answers_for_nothing",),
        "A claim counts as paid by a payment that was reversed.",
    ),
    Mutation(
        "a key that the ledger has is not recorded",
        RESTORED,
        "where not exists (select 1 from effects where effects.key = :key)",
        "where 1 = 1",
        (RESTORED_TESTS + "test_a_key_that_the_ledger_has_is_not_recorded",),
        "What a worker was faster to send is recorded beside its own row.",
    ),
    Mutation(
        "nothing is recorded without the word that the journal was restored",
        RECONCILE,
        "elif self.restored and (",
        "elif (",
        (RESTORED_JOURNAL + "test_nothing_is_recorded_without_a_restore",),
        "Somebody else's payment answers for one of ours that was never made.",
    ),
    Mutation(
        "the window begins where the journal ends",
        "service/lost.py",
        "min(made_at, from_ms(newest))",
        "made_at",
        (RESTORED_JOURNAL + "test_who_says_too_late_a_time_loses_nothing",),
        "Whoever says a little too late when the copy was made pays again what was paid before that.",
    ),
    Mutation(
        "the owner beside the fence, in every write",
        LEASES,
        'HELD = "select fence from leases where name = :name and fence = :fence and owner = :owner',
        'HELD = "select fence from leases where name = :name and fence = :fence and owner is not null',
        (NUMBER_GIVEN_AGAIN,),
        "A worker that lived through a restore writes beside whoever was given its number anew.",
    ),
    Mutation(
        "the owner beside the fence, in a renewal",
        LEASES,
        "where name = :name and fence = :fence and owner = :owner\nreturning fence",
        "where name = :name and fence = :fence and owner is not null\nreturning fence",
        (NUMBER_GIVEN_AGAIN,),
        "A worker that lived through a restore keeps the lease of whoever was given its number anew.",
    ),
    Mutation(
        "the owner beside the fence, where a lease is given back",
        LEASES,
        "set owner = null where name = :name and fence = :fence and owner = :owner",
        "set owner = null where name = :name and fence = :fence",
        (NUMBER_GIVEN_AGAIN,),
        "A worker that lived through a restore gives its successor's lease away.",
    ),
    Mutation(
        "whose claim it is, where a slot is freed",
        LEDGER,
        "update effects set state = 'released'\nwhere slot = :slot and key = :key and state = 'claimed' and lease = :lease and fence = :fence\n"
        "    and (claimed_by is null or claimed_by = :owner)",
        "update effects set state = 'released'\nwhere slot = :slot and key = :key and state = 'claimed' and lease = :lease and fence = :fence",
        (SUCCESSORS_CLAIM,),
        "A refusal of a call from before a restore frees the slot of a call that is under way.",
    ),
    Mutation(
        "whose claim it is, before one more call",
        LEDGER,
        "effects.fence = :fence and leases.owner = :owner",
        "effects.fence = :fence and leases.owner is not null",
        (SUCCESSORS_CLAIM,),
        "A worker that lived through a restore calls once more beside its successor.",
    ),
)
