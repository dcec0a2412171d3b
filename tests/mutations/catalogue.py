"""
Every safeguard that has been taken away to see the suite go red, by the module it stands in.

`old` is as short as it can be and still stand once in its file, so that an edit nearby leaves it alone. A safeguard that is added gets its
entry here; an entry whose mutant survives is a test that is missing.
"""

from __future__ import annotations

from tests.mutations.workshop import Mutation

AUDIT = "checkpointing/audit.py"
APPROVALS = "checkpointing/approvals.py"
COVERING = "checkpointing/covering.py"
DECISIONS = "checkpointing/decisions.py"
LEASES = "checkpointing/leases.py"
LEDGER = "checkpointing/ledger.py"
RESOLVING = "checkpointing/resolving.py"
RUNS = "checkpointing/runs.py"
SAVERS = "checkpointing/savers.py"
SLOTS = "checkpointing/slots.py"
PERFORM = "tools/perform.py"
ADVANCE = "graph/advance.py"

SAVERS_TESTS = "tests/checkpointing/test_savers.py::"
LEASES_TESTS = "tests/checkpointing/test_leases.py::"
AUDIT_TESTS = "tests/checkpointing/test_audit.py::"
MEETING_TESTS = "tests/races/test_meeting_at_a_lock.py::"
DECIDERS = "tests/races/test_two_deciders.py::"
SUPERVISORS = "tests/races/test_two_supervisors.py::"
STOPPED = "tests/races/test_stopped_worker.py::"
LIFE = "tests/graph/test_life.py::"
TABLE = "tests/graph/test_input_table.py::"
SLOT_TESTS = "tests/nodes/test_slots.py::"
DOUBT = "tests/nodes/test_doubt.py::"
ATTACK = "tests/nodes/test_claims_under_attack.py::"
ODD_PLACES = "tests/nodes/test_approvals_in_odd_places.py::"
ASYNC_TOOLS = "tests/nodes/test_async_tools.py::"

ONE_WRITER = (
    Mutation(
        "the fence in every write",
        LEASES,
        "if not tx.one(HELD_TO_END if to_end else HELD",
        "if tx is None and not tx.one(HELD_TO_END if to_end else HELD",
        (SAVERS_TESTS + "test_who_lost_the_lease_writes_nothing",),
        "A worker that stood still past its lease goes on writing beside its successor.",
    ),
    Mutation(
        "the fence in the savers",
        SAVERS,
        "    check_fence(tx, lease)\n",
        "",
        (SAVERS_TESTS + "test_who_lost_the_lease_writes_nothing",),
        "A stale worker's checkpoint becomes the head.",
    ),
    Mutation(
        "the fence before a claim",
        LEDGER,
        "            check_fence(tx, asked.place.held)\n",
        "",
        (STOPPED + "test_a_worker_that_stood_still_begins_no_effect",),
        "A stale worker begins an effect.",
    ),
    Mutation(
        "the fence before a start",
        RUNS,
        "            check_fence(tx, lease)\n",
        "",
        (LEASES_TESTS + "test_a_heartbeat_that_fails_for_a_whole_lease_loses_it",),
        "A stale worker books an attempt on its successor's run.",
    ),
    Mutation(
        "the fence before an end",
        RUNS,
        "        with self.store.transaction(name) as tx:\n            check_fence(tx, lease, to_end=True)\n",
        "        with self.store.transaction(name) as tx:\n",
        (LEASES_TESTS + "test_who_lost_the_lease_ends_nothing",),
        "A stale worker buries the run that its successor carries on.",
    ),
    Mutation(
        "the fence before parking",
        RUNS,
        '        with self.store.transaction("run.park") as tx:\n            check_fence(tx, lease, to_end=True)\n',
        '        with self.store.transaction("run.park") as tx:\n',
        (LEASES_TESTS + "test_who_lost_the_lease_ends_nothing",),
        "A stale worker parks the run that its successor carries on.",
    ),
    Mutation(
        "the fence before a question",
        APPROVALS,
        "            if place.lease:\n                check_fence(tx, place.lease)\n",
        "",
        (LEASES_TESTS + "test_who_lost_the_lease_asks_nothing",),
        "A stale worker supersedes a question that was decided.",
    ),
    Mutation(
        "the fence's lock",
        LEASES,
        "and fence = :fence and owner is not null for share",
        "and fence = :fence and owner is not null",
        (SAVERS_TESTS + "test_a_take_over_waits_for_a_write_under_way[postgres]",),
        "Under read committed a stale write commits after the take-over.",
    ),
    Mutation(
        "a fence that grows",
        LEASES,
        "fence = leases.fence + 1",
        "fence = leases.fence",
        (SAVERS_TESTS + "test_who_lost_the_lease_writes_nothing",),
        "Two holdings look alike.",
    ),
    Mutation(
        "a lease that is held is not taken",
        LEASES,
        "where leases.owner is null or leases.expires_ms <= :now\n",
        "where true\n",
        (LIFE + "test_a_call_that_holds_the_thread_makes_another_busy",),
        "Two workers run one thread by turns.",
    ),
    Mutation(
        "a lease that is over is taken",
        LEASES,
        "leases.owner is null or leases.expires_ms <= :now",
        "leases.owner is null",
        (LIFE + "test_a_worker_that_dies_costs_one_attempt_and_its_lease_expires",),
        "A dead worker keeps its run for ever.",
    ),
    Mutation(
        "a heartbeat renews its own lease",
        LEASES,
        "where name = :name and fence = :fence and owner is not null\nreturning",
        "where name = :name and owner is not null\nreturning",
        (LEASES_TESTS + "test_a_lease_that_was_taken_over_is_not_renewed",),
        "A stale worker keeps its successor's lease alive after that one's death.",
    ),
    Mutation(
        "a lease that was given back is not renewed",
        LEASES,
        "where name = :name and fence = :fence and owner is not null\nreturning",
        "where name = :name and fence = :fence\nreturning",
        (LEASES_TESTS + "test_a_lease_that_was_given_back_is_not_renewed",),
        "A heartbeat runs for ever on a lease nobody holds.",
    ),
    Mutation(
        "one gives back what is one's own",
        LEASES,
        "set owner = null where name = :name and fence = :fence",
        "set owner = null where name = :name",
        (LEASES_TESTS + "test_who_lost_the_lease_cannot_give_it_back",),
        "A stale worker opens its successor's thread to a third.",
    ),
    Mutation(
        "the lock of a writer without a lease",
        LEASES,
        "as left_ms from leases where name = :name for share",
        "as left_ms from leases where name = :name",
        (MEETING_TESTS + "test_a_take_over_waits_for_a_writer_without_a_lease[postgres-held-before]",),
        "A raw graph's checkpoint lands in a thread that a worker has just taken.",
    ),
    Mutation(
        "a writer without a lease is kept out",
        LEASES,
        'if row and row["owner"] is not None and int(row["left_ms"]) > 0:\n        raise',
        "if row is None:\n        raise",
        (
            SAVERS_TESTS + "test_without_a_lease_one_writes_only_while_nobody_holds_one",
            MEETING_TESTS + "test_a_writer_without_a_lease_waits_for_a_take_over_and_is_kept_out",
        ),
        "A raw graph writes into a thread that a worker holds.",
    ),
    Mutation(
        "a heartbeat that failed once goes on",
        LEASES,
        "            except StoreUnreachable:\n                failed = True",
        "            except StoreUnreachable:\n                return",
        (LEASES_TESTS + "test_a_heartbeat_that_failed_once_is_tried_again",),
        "One dropped connection loses the lease.",
    ),
    Mutation(
        "a heartbeat renews",
        LEASES,
        "                self.leases.renew(self.lease)\n",
        "                self.leases.holder(self.lease.name)\n",
        (ASYNC_TOOLS + "test_a_tool_that_takes_ten_leases_is_started_once",),
        "A tool that takes longer than a lease is started again by another worker.",
    ),
    Mutation(
        "a checkpoint follows the head",
        SAVERS,
        "if head != parent:",
        "if head is None:",
        (SAVERS_TESTS + "test_a_parent_that_is_not_the_head_is_superseded",),
        "A branch that was left behind becomes the head.",
    ),
    Mutation(
        "a checkpoint sorts after the head",
        SAVERS,
        "if checkpoint_id < head:",
        "if head is None:",
        (SAVERS_TESTS + "test_a_clock_that_is_behind_is_told",),
        "A host whose clock is behind runs the last step again for ever.",
    ),
)

ONE_EFFECT = (
    Mutation(
        "settled before it is returned",
        PERFORM,
        "    return (yield from _kept(lambda: ledger.settle(claim, outcome)))",
        "    return __import__('dataclasses').replace(claim.record, state='settled', outcome=outcome)",
        (SLOT_TESTS + "test_time_travel_on_the_raw_graph_is_answered_from_the_ledger",),
        "The graph goes on with an outcome that nobody recorded.",
        in_peace=False,  # at the run's end somebody notices
    ),
    Mutation(
        "the digest comparison",
        LEDGER,
        "if (record.effect, record.digest) != (asked.effect, asked.digest):",
        "if record.effect != asked.effect:",
        (
            SLOT_TESTS + "test_an_edited_past_cannot_pay_something_else",
            SLOT_TESTS + "test_a_business_identity_is_paid_once_whatever_thread_asks",
        ),
        "Other arguments are answered with what was done for the first.",
    ),
    Mutation(
        "an effect answers for itself only",
        LEDGER,
        "if (record.effect, record.digest) != (asked.effect, asked.digest):",
        "if record.digest != asked.digest:",
        (ATTACK + "test_one_effect_never_answers_for_another",),
        "A message's outcome passes for a payment's.",
    ),
    Mutation(
        "an outcome is never replaced",
        LEDGER,
        "where slot = :slot and key = :key and state in ('claimed', 'in_doubt', 'released') returning *",
        "where slot = :slot and key = :key returning *",
        (STOPPED + "test_a_worker_that_stood_still_past_its_lease_writes_nothing",),
        "A late worker writes over what its successor recorded.",
    ),
    Mutation(
        "a person does not replace an outcome",
        RESOLVING,
        "where key = :key and state in ('claimed', 'in_doubt') returning *\n\"\"\"\nRESOLVE_NOTHING",
        'where key = :key returning *\n"""\nRESOLVE_NOTHING',
        (DOUBT + "test_resolving_says_what_is_wrong",),
        "Somebody's word counts more than the receiver's.",
    ),
    Mutation(
        "a settled effect is not freed",
        RESOLVING,
        "set state = 'released' where key = :key and state in ('claimed', 'in_doubt')",
        "set state = 'released' where key = :key",
        (DOUBT + "test_resolving_says_what_is_wrong",),
        "What was paid is paid again.",
    ),
    Mutation(
        "an effect at work is not resolved",
        RESOLVING,
        'if found["state"] == "claimed" and is_live(',
        "if found is None and is_live(",
        (ATTACK + "test_an_effect_at_work_is_not_resolved",),
        "A person frees the slot of a call under way, and it is called twice.",
    ),
    Mutation(
        "the owner that lives",
        LEDGER,
        'if record.state == "claimed" and _has_live_owner(tx, row, asked.place.held):',
        "if record is None:",
        (SUPERVISORS + "test_two_supervisors_of_an_effect_in_doubt_take_it_over_once",),
        "Two threads with one business identity call at once.",
    ),
    Mutation(
        "the owner whose lease is over",
        LEASES,
        'int(row["fence"]) == fence and int(row["left_ms"]) > 0',
        'int(row["fence"]) == fence',
        (SUPERVISORS + "test_two_supervisors_of_an_effect_in_doubt_take_it_over_once",),
        "An effect of a dead worker is busy for ever.",
    ),
    Mutation(
        "a business identity is one slot",
        SLOTS,
        'f"once|{self.effect}|{self.identity}"',
        'f"once|{self.effect}|{self.identity}|{self.thread_id}"',
        (SLOT_TESTS + "test_a_business_identity_is_paid_once_whatever_thread_asks",),
        "A second thread for the same claim pays it again.",
    ),
    Mutation(
        "a take-over sends the same key",
        PERFORM,
        'keyed = {**arguments, "key": claim.record.key}',
        'keyed = {**arguments, "key": f"{claim.record.key}:{claim.record.calls}"}',
        (
            DOUBT + "test_a_young_key_is_sent_again",
            SUPERVISORS + "test_two_supervisors_of_a_crashed_run_take_over_once[sqlite-keyed]",
        ),
        "The receiver cannot tell the repeat from a second payment.",
    ),
    Mutation(
        "a freed slot keeps its key",
        LEDGER,
        'return str(released["key"])',
        "pass",
        (ATTACK + "test_a_freed_slot_keeps_its_key_for_the_same_request",),
        "A request that was made twice reaches the receiver under two keys.",
    ),
    Mutation(
        "doubt is resolved before a call",
        PERFORM,
        "        if tried.doubtful:\n            found =",
        "        if tried is None:\n            found =",
        (DOUBT + "test_without_keys_a_look_up_decides", DOUBT + "test_an_expired_key_that_is_not_found_takes_a_person"),
        "A call that may have happened is made again, blindly.",
    ),
    Mutation(
        "a key past its life is not sent",
        "tools/receiver.py",
        "receiver.key_life is None or age < receiver.key_life",
        "receiver.key_life is None or receiver.key_life",
        (
            DOUBT + "test_an_expired_key_is_looked_up_and_found",
            DOUBT + "test_an_expired_key_that_is_not_found_takes_a_person",
        ),
        "The receiver has forgotten the key, and executes again.",
    ),
    Mutation(
        "a look-up waits for the receiver to know",
        PERFORM,
        "yield Wait(max(timedelta(0), effect.receiver.settle_delay - since_call))",
        "yield Wait(timedelta(0))",
        (ATTACK + "test_a_look_up_waits_until_the_receiver_is_sure_to_know",),
        "A payment that is not visible yet is made again.",
    ),
    Mutation(
        "a refusal after a doubtful call frees nothing",
        PERFORM,
        "say = ledger.doubt if tried.doubtful else ledger.release",
        "say = ledger.release",
        (DOUBT + "test_a_refusal_after_a_call_that_may_have_happened_frees_nothing",),
        "A payment that may have happened is taken for one that did not.",
    ),
    Mutation(
        "who left during the call frees nothing",
        PERFORM,
        "if not tried.doubtful and not tried.entered:",
        "if not tried.doubtful:",
        (ASYNC_TOOLS + "test_an_async_tool_that_was_cancelled_is_in_doubt",),
        "A call that was cut off is taken for one that never began.",
    ),
    Mutation(
        "a doubt is its own claim's",
        LEDGER,
        'where slot = :slot and key = :key and state = \'claimed\' and lease = :lease and fence = :fence returning *\n"""\nSETTLE',
        'where slot = :slot and key = :key and state = \'claimed\' returning *\n"""\nSETTLE',
        (ATTACK + "test_a_late_doubt_cannot_touch_a_claim_that_was_taken_over",),
        "A late worker stops its successor in the middle of a call.",
    ),
    Mutation(
        "a release is its own claim's",
        LEDGER,
        'where slot = :slot and key = :key and state = \'claimed\' and lease = :lease and fence = :fence returning *\n"""\nGET',
        'where slot = :slot and key = :key and state = \'claimed\' returning *\n"""\nGET',
        (ATTACK + "test_a_late_release_cannot_free_a_claim_that_was_taken_over",),
        "A late worker frees the slot of its successor's call, and a third calls.",
    ),
    Mutation(
        "a clock behind the call",
        LEDGER,
        'if int(row["now"]) < int(row["called_ms"]):',
        "if row is None:",
        (ATTACK + "test_a_clock_set_back_before_a_call_is_told",),
        "By a clock that was set back an expired key looks young.",
    ),
    Mutation(
        "a lost receipt is no replay",
        LEDGER,
        "if asked.slot.identity is None and not asked.place.answers(tx, row):",
        "if row is None:",
        (SLOT_TESTS + "test_a_graph_invoked_twice_inside_a_function_is_ambiguous",),
        "A second operation that counts the same visit is never executed.",
    ),
    Mutation(
        "one slot at a time in a process",
        PERFORM,
        "    with ledger.executing.hold(asked.slot, asked.place):",
        "    if ledger:",
        (ATTACK + "test_an_effect_at_work_is_not_begun_again_under_the_same_lease",),
        "A node that timed out runs its tool twice at once.",
    ),
    Mutation(
        "a lease is kept while a tool runs",
        "graph/holding.py",
        "            self.executing.wait_idle(self.lease)\n",
        "",
        (ATTACK + "test_a_lease_is_kept_while_a_tool_runs_beside_an_effect_in_doubt",),
        "Another worker takes a running effect for one whose owner is gone.",
    ),
    Mutation(
        "an effect has no other way in",
        "tools/effect.py",
        '        """Refuse: a direct call has no claim',
        '        return self.function(**_arguments)\n        """Refuse: a direct call has no claim',
        (SLOT_TESTS + "test_an_effect_cannot_be_called_directly",),
        "A call without a claim is repeated by every re-run.",
    ),
    Mutation(
        "no policy of the graph's around an effect",
        "graph/checks.py",
        "    if under_policy:\n",
        "    if builder is None:\n",
        (SLOT_TESTS + "test_an_effect_takes_no_policy_of_the_graph",),
        "LangGraph runs the node again, or answers it from a cache that all threads share.",
    ),
    Mutation(
        "no end without an outcome",
        ADVANCE,
        "        if key is not None:\n            self._bury",
        "        if key is self:\n            self._bury",
        (ATTACK + "test_a_run_is_not_done_while_an_effect_is_unsettled",),
        "A run is done, and nobody knows whether it paid.",
    ),
)

ONE_DECISION = (
    Mutation(
        "the first decision wins",
        APPROVALS,
        "where id = :id and state = 'pending' and (",
        "where id = :id and (",
        (
            DECIDERS + "test_two_approvers_have_one_winner_and_one_payment",
            TABLE + "test_a_second_decision_is_told_who_won",
        ),
        "The second decision writes over the first.",
    ),
    Mutation(
        "no decision after the expiry",
        APPROVALS,
        "state = 'pending' and (expires_ms is null or expires_ms > :now)",
        "state = 'pending'",
        (LIFE + "test_an_overdue_question_gets_its_outcome_from_whoever_advances",),
        "Somebody approves what has expired.",
    ),
    Mutation(
        "no expiry after a decision",
        APPROVALS,
        "where thread_id = :thread_id and state = 'pending' and expires_ms <= :now",
        "where thread_id = :thread_id and expires_ms <= :now",
        (DECIDERS + "test_an_approval_against_its_expiry_has_one_outcome",),
        "What was decided expires after all.",
    ),
    Mutation(
        "no expiry before its time",
        APPROVALS,
        "where thread_id = :thread_id and state = 'pending' and expires_ms <= :now",
        "where thread_id = :thread_id and state = 'pending' and expires_ms is not null",
        (LIFE + "test_a_question_that_is_not_due_does_not_expire_with_one_that_is",),
        "One overdue question takes the others with it.",
    ),
    Mutation(
        "a decision wakes its run",
        APPROVALS,
        "in decided}):\n                wake(tx, thread_id)",
        "in decided}):\n                pass",
        (MEETING_TESTS + "test_a_decision_waits_for_a_run_that_parks",),
        "A decided approval leaves its run parked.",
        in_peace=False,  # no claim is ever paid
    ),
    Mutation(
        "parking looks again",
        APPROVALS,
        'return all(found[one] == "pending" for one in ids)',
        "return True",
        (LIFE + "test_a_pass_that_a_decision_asks_for_is_no_take_over",),
        "A decision that came while the run parked is never read.",
    ),
    Mutation(
        "parking looks under a lock",
        APPROVALS,
        "where thread_id = :thread_id order by id for update",
        "where thread_id = :thread_id order by id",
        (MEETING_TESTS + "test_a_decision_waits_for_a_run_that_parks[postgres]",),
        "A decision between the look and the parking is never read.",
    ),
    Mutation(
        "the hash of what was approved",
        COVERING,
        "if found.approved()[1] != arguments_hash:",
        "if found is None:",
        (LIFE + "test_an_effect_refuses_arguments_that_were_not_approved",),
        "Another amount is paid than the one approved.",
    ),
    Mutation(
        "an approval of the same thread",
        COVERING,
        "if found is None or found.thread_id != thread_id:",
        "if found is None:",
        (ATTACK + "test_an_approval_allows_what_was_approved_in_its_own_thread",),
        "One claim's approval pays another claim.",
    ),
    Mutation(
        "what was approved, and not what was rejected",
        COVERING,
        'kind not in ("approve", "edit")',
        "kind is None",
        (ATTACK + "test_an_approval_allows_what_was_approved_in_its_own_thread",),
        "A state written by hand turns a no into a yes.",
    ),
    Mutation(
        "an approval is used once",
        LEDGER,
        "if used := tx.one(UNDER_APPROVAL, approval_id=asked.approval_id, slot=asked.slot.id):",
        "if used := tx.one(UNDER_APPROVAL, approval_id='', slot=asked.slot.id):",
        (LIFE + "test_an_approval_allows_one_effect",),
        "One approval pays twice.",
    ),
    Mutation(
        "an approval is used once, by two at once",
        "checkpointing/schema/0001_journal.sql",
        "approval_id text unique",
        "approval_id text",
        (MEETING_TESTS + "test_two_effects_at_once_under_one_approval[postgres]",),
        "Two effects that do not see each other act under one approval.",
    ),
    Mutation(
        "the hash of what was shown",
        DECISIONS,
        "if shown is not None and shown != approval.payload_hash:",
        "if approval is None:",
        (TABLE + "test_a_decision_on_another_payload_is_refused",),
        "Somebody approves what they have not seen.",
    ),
    Mutation(
        "a decision names its question",
        "nodes/approval.py",
        'answer.get("approval") == approval.id',
        'answer.get("approval")',
        (LIFE + "test_a_raw_resume_that_names_another_approval_decides_nothing",),
        "An answer to another question approves this one.",
    ),
    Mutation(
        "a question answers for its own visit",
        APPROVALS,
        "if row and not place.answers(tx, row):",
        "if row is None and place is None:",
        (ODD_PLACES + "test_a_question_asked_again_inside_a_function_is_not_answered_by_the_first",),
        "A second visit is allowed by what was said to the first.",
    ),
    Mutation(
        "an edit keeps the facts",
        DECISIONS,
        "if payload.keys() != approval.payload.keys():",
        "if payload.keys() < approval.payload.keys():",
        (LIFE + "test_an_edit_keeps_the_payloads_keys",),
        "An edit says who is paid, which nobody was asked.",
    ),
    Mutation(
        "a decision needs a principal",
        APPROVALS,
        "    if not principal:\n",
        "    if approval is None:\n",
        (TABLE + "test_a_decision_needs_a_principal",),
        "Nobody has approved.",
    ),
    Mutation(
        "the submitter does not approve",
        APPROVALS,
        "if principal == submitter(tx, approval.thread_id):",
        "if principal is None:",
        (TABLE + "test_the_submitter_may_not_approve",),
        "Somebody approves their own claim.",
    ),
    Mutation(
        "the approvers and nobody else",
        APPROVALS,
        "if approval.approvers is not None and principal not in approval.approvers:",
        "if principal is None:",
        (LIFE + "test_only_the_approvers_may_decide",),
        "Anybody decides.",
    ),
    Mutation(
        "another payload is another question",
        APPROVALS,
        "if latest and latest.payload_hash == payload_hash:",
        "if latest:",
        (LIFE + "test_a_payload_that_changed_supersedes_the_question",),
        "A decision about the old payload allows the new one.",
    ),
)

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
        RUNS,
        "where thread_id = :thread_id and state = 'parked'\n",
        "where thread_id = :thread_id\n",
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
        "        check_turn(self.compiled.get_state(config), thread_id, turn=run.turn, started=run.head is not None)\n",
        "",
        (ATTACK + "test_a_forged_turn_is_refused",),
        "A head that somebody wrote by hand passes for the run's.",
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
        'audit(tx, approval, "approval.decide", actor=str(principal), **decided_body(approval))',
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

MUTATIONS = (*ONE_WRITER, *ONE_EFFECT, *ONE_DECISION, *ONE_RUN, *THE_RECORD)
