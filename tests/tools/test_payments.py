"""The effect `pay`: what it answers, and what each of the receiver's errors means."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import stripe

from checkpointing.errors import (
    Declined,
    KeyInUse,
    KeyMismatch,
    Rejected,
    ToolError,
    UnguardedEffect,
    Unreachable,
)
from tools.effect import Effect
from tools.payments import pay_effect, transfer_group
from tools.receivers import STRIPE
from tools.sandbox import SandboxControl, SandboxProcess

AtOnce = Callable[[Callable[[int], object], int], list[object]]


@pytest.fixture
def pay(sandbox: SandboxProcess) -> Effect:
    return pay_effect(api_key="sk_test_1", base_url=sandbox.url, timeout_s=10)


@pytest.fixture
def arguments(claim_id: str, key: str) -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "amount": 1840_00,
        "currency": "EUR",
        "payee": "acct_mara",
        "key": key,
    }


def test_pay_makes_one_transfer_that_carries_claim_and_key(
    pay: Effect, control: SandboxControl, arguments: dict[str, Any], claim_id: str, key: str
) -> None:
    paid = pay.function(**arguments)

    [made] = control.payments(claim_id)
    assert paid == {
        "id": made.id,
        "amount": 1840_00,
        "currency": "EUR",
        "payee": "acct_mara",
        "claim_id": claim_id,
    }
    assert (made.key, made.payee, made.currency) == (key, "acct_mara", "eur")


def test_the_same_key_is_the_same_payment(
    pay: Effect, control: SandboxControl, arguments: dict[str, Any], claim_id: str
) -> None:
    assert pay.function(**arguments) == pay.function(**arguments)
    assert len(control.payments(claim_id)) == 1


def test_the_effect_is_declared_for_stripe_and_once_a_claim(pay: Effect) -> None:
    assert (pay.name, pay.receiver, pay.once and pay.once({"claim_id": "0042"})) == (
        "pay",
        STRIPE,
        "0042",
    )
    with pytest.raises(UnguardedEffect):
        pay(claim_id="0042")


def test_the_lookup_finds_what_the_key_paid_and_nothing_else(pay: Effect, arguments: dict[str, Any]) -> None:
    assert pay.find
    assert pay.find(**arguments) is None
    paid = pay.function(**arguments)

    assert pay.find(**arguments) == paid
    assert pay.find(**{**arguments, "key": "another"}) is None
    assert len(transfer_group(arguments["key"])) == 35


def test_a_strangers_transfer_in_the_same_group_is_not_ours(
    pay: Effect, client: stripe.StripeClient, arguments: dict[str, Any], key: str
) -> None:
    client.v1.transfers.create(
        {
            "amount": 1,
            "currency": "eur",
            "destination": "acct_else",
            "transfer_group": transfer_group(key),
        }
    )

    assert pay.find
    assert pay.find(**arguments) is None


def fails(effect: Effect, arguments: dict[str, Any], meaning: type[ToolError]) -> ToolError:
    with pytest.raises(ToolError) as raised:
        effect.function(**arguments)
    assert type(raised.value) is meaning
    return raised.value


def test_a_closed_account_declines(pay: Effect, arguments: dict[str, Any]) -> None:
    said = fails(pay, {**arguments, "payee": "acct_closed_9"}, Declined)

    assert "account_closed" in str(said)
    assert "req_" in str(said)


def test_a_short_balance_declines(pay: Effect, control: SandboxControl, arguments: dict[str, Any]) -> None:
    control.set_balance(1)

    fails(pay, arguments, Declined)


@pytest.mark.parametrize(
    "change",
    [{"amount": 0}, {"currency": "XYZ"}, {"payee": "mara"}, {"payee": "acct_missing"}],
)
def test_a_wrong_request_is_rejected(pay: Effect, arguments: dict[str, Any], change: dict[str, Any]) -> None:
    fails(pay, {**arguments, **change}, Rejected)


def test_a_wrong_api_key_is_rejected(sandbox: SandboxProcess, arguments: dict[str, Any]) -> None:
    for api_key in ("pk_test_1", ""):
        fails(pay_effect(api_key=api_key, base_url=sandbox.url), arguments, Rejected)


def test_a_changed_payload_is_a_mismatch(pay: Effect, arguments: dict[str, Any]) -> None:
    pay.function(**arguments)

    fails(pay, {**arguments, "amount": 1}, KeyMismatch)


def test_a_key_that_is_being_executed_is_in_use(
    pay: Effect,
    control: SandboxControl,
    arguments: dict[str, Any],
    claim_id: str,
    at_once: AtOnce,
) -> None:
    control.fault("transfers", "hold_before", match=claim_id)

    def first_or_second(number: int) -> object:
        if number == 0:
            return pay.function(**arguments)
        control.wait_held()
        fails(pay, arguments, KeyInUse)
        return control.release()

    paid, _ = at_once(first_or_second, 2)
    assert pay.function(**arguments) == paid


@pytest.mark.parametrize(
    ("kind", "moved"),
    [("drop_before", 0), ("drop_after", 1), ("rate_limit", 0), ("error_500", 0)],
)
def test_doubt_is_unreachable(
    *,
    pay: Effect,
    control: SandboxControl,
    arguments: dict[str, Any],
    claim_id: str,
    kind: str,
    moved: int,
) -> None:
    control.fault("transfers", kind, match=claim_id)

    fails(pay, arguments, Unreachable)
    assert len(control.payments(claim_id)) == moved


def test_no_answer_in_time_is_unreachable(
    sandbox: SandboxProcess, control: SandboxControl, arguments: dict[str, Any], claim_id: str
) -> None:
    control.fault("transfers", "hold_after", match=claim_id)

    hasty = pay_effect(api_key="sk_test_1", base_url=sandbox.url, timeout_s=0.2)
    fails(hasty, arguments, Unreachable)
    assert len(control.payments(claim_id)) == 1


def test_nobody_listening_is_unreachable(arguments: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    fails(pay_effect(api_key="sk_test_1", base_url=url), arguments, Unreachable)


def test_a_stored_500_does_not_hide_the_payment_that_was_made(
    pay: Effect, control: SandboxControl, arguments: dict[str, Any], claim_id: str
) -> None:
    """Stripe answers the stored 500 for as long as it knows the key; the look-up is the way out."""
    control.fault("transfers", "error_500_after", match=claim_id)

    paid = pay.function(**arguments)

    assert [paid["id"]] == [payment.id for payment in control.payments(claim_id)]
    assert pay.function(**arguments) == paid


def test_a_500_whose_lookup_fails_too_stays_unreachable(
    pay: Effect, control: SandboxControl, arguments: dict[str, Any], claim_id: str
) -> None:
    control.fault("transfers", "error_500_after", match=claim_id)
    control.fault("transfers", "drop_before", method="GET")

    fails(pay, arguments, Unreachable)


def test_a_refused_lookup_is_doubt_and_never_rejected(sandbox: SandboxProcess, arguments: dict[str, Any]) -> None:
    stranger = pay_effect(api_key="pk_test_1", base_url=sandbox.url)

    assert stranger.find
    with pytest.raises(Unreachable):
        stranger.find(**arguments)


def test_the_list_has_what_was_paid_newest_first_and_whose_it_is(
    pay: Effect, client: stripe.StripeClient, arguments: dict[str, Any], claim_id: str, key: str
) -> None:
    paid = pay.function(**arguments)
    client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else"})

    assert pay.executed
    foreign, ours = itertools.islice(pay.executed(since=None), 2)
    assert (ours.id, ours.key, ours.identity, ours.outcome) == (paid["id"], key, claim_id, paid)
    assert (foreign.key, foreign.identity, foreign.outcome["amount"]) == (None, None, 1)
    assert ours.at.tzinfo is not None


def test_the_list_is_read_a_page_at_a_time_as_far_as_somebody_asks(
    pay: Effect, client: stripe.StripeClient, control: SandboxControl, arguments: dict[str, Any]
) -> None:
    for _ in range(101):
        client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else"})
    before = len(control.calls())
    assert pay.executed
    listed = pay.executed(since=None)

    assert len(control.calls()) == before
    assert len({one.id for one in itertools.islice(listed, 100)}) == 100
    assert len(control.calls()) == before + 1
    next(listed)
    assert len(control.calls()) == before + 2


def test_the_list_begins_where_it_is_told_to(pay: Effect, arguments: dict[str, Any]) -> None:
    pay.function(**arguments)

    assert pay.executed
    assert list(pay.executed(since=datetime.now(UTC) + timedelta(days=1))) == []
    assert len(list(pay.executed(since=datetime.now(UTC) - timedelta(days=1)))) > 0


def test_a_list_that_breaks_off_never_looks_like_its_end(
    pay: Effect, client: stripe.StripeClient, control: SandboxControl
) -> None:
    for _ in range(101):
        client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else"})
    assert pay.executed
    listed = pay.executed(since=None)
    next(listed)
    control.fault("transfers", "drop_before", method="GET")

    with pytest.raises(Unreachable):
        list(listed)


def test_one_payment_is_retrieved_by_its_id(
    pay: Effect, sandbox: SandboxProcess, control: SandboxControl, arguments: dict[str, Any]
) -> None:
    paid = pay.function(**arguments)

    assert pay.retrieve
    found = pay.retrieve(executed_id=paid["id"])
    assert found
    assert found.outcome == paid
    assert pay.retrieve(executed_id="tr_none") is None
    control.fault("transfers", "drop_before", method="GET")
    with pytest.raises(Unreachable):
        pay.retrieve(executed_id=paid["id"])
    stranger = pay_effect(api_key="pk_test_1", base_url=sandbox.url)
    assert stranger.retrieve
    with pytest.raises(Unreachable):
        stranger.retrieve(executed_id=paid["id"])
