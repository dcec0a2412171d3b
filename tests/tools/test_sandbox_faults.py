"""The sandbox's misbehaviour, as a caller feels it and as the money shows it."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
import stripe

from checkpointing.errors import Rejected
from tools.sandbox import SandboxControl, SandboxProcess

AtOnce = Callable[[Callable[[int], object], int], list[object]]
Pay = Callable[[], str]


@pytest.fixture
def pay(client: stripe.StripeClient, claim_id: str, key: str) -> Pay:
    def transfer() -> str:
        made = client.v1.transfers.create(
            {
                "amount": 500,
                "currency": "eur",
                "destination": "acct_a",
                "metadata": {"claim_id": claim_id},
            },
            {"idempotency_key": key},
        )
        return made.id

    return transfer


def test_dropped_after_execution_the_repeat_is_a_replay(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    control.fault("transfers", "drop_after", match=claim_id)

    with pytest.raises(stripe.APIConnectionError):
        pay()
    assert [pay()] == [payment.id for payment in control.payments(claim_id)]
    assert [(c["outcome"], c["executed"]) for c in control.calls()[-2:]] == [
        ("dropped", True),
        ("replayed", False),
    ]


def test_dropped_before_execution_the_repeat_executes(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    control.fault("transfers", "drop_before", match=claim_id)

    with pytest.raises(stripe.APIConnectionError):
        pay()
    assert control.payments(claim_id) == []
    pay()
    assert len(control.payments(claim_id)) == 1


def test_a_dropped_connection_is_dropped_for_httpx_too(sandbox: SandboxProcess, control: SandboxControl) -> None:
    control.fault("claims", "drop_after", method="GET", times=2)

    with httpx.Client(base_url=sandbox.url) as http:
        for _ in range(2):
            with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
                http.get("/claims/none")
        assert http.get("/claims/none").status_code == 404


def test_held_after_execution_the_money_has_moved_and_a_repeat_is_answered(
    control: SandboxControl, pay: Pay, claim_id: str, at_once: AtOnce
) -> None:
    control.fault("transfers", "hold_after", match=claim_id)

    def held_or_second(number: int) -> object:
        if number == 0:
            return pay()
        control.wait_held()
        repeated = pay()
        count = len(control.payments(claim_id))
        return repeated, count, control.calls()[-2]["outcome"], control.release()

    first, second = at_once(held_or_second, 2)

    assert second == (first, 1, "held", 1)


def test_held_before_execution_nothing_has_moved_until_the_release(
    control: SandboxControl, pay: Pay, claim_id: str, at_once: AtOnce
) -> None:
    control.fault("transfers", "hold_before", match=claim_id)

    def held_or_look(number: int) -> object:
        if number == 0:
            return pay()
        control.wait_held()
        before = len(control.payments(claim_id))
        control.release()
        return before

    made, before = at_once(held_or_look, 2)

    assert (before, [p.id for p in control.payments(claim_id)]) == (0, [made])


def test_an_answer_is_held_no_longer_than_it_was_told(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    control.fault("transfers", "hold_after", match=claim_id, seconds=0.01)

    assert pay() == control.payments(claim_id)[0].id


def test_an_error_500_is_stored_and_nothing_moves(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    control.fault("transfers", "error_500", match=claim_id)

    errors = []
    for _ in range(2):
        with pytest.raises(stripe.APIError) as broken:
            pay()
        errors.append(broken.value)
    assert [error.http_status for error in errors] == [500, 500]
    assert errors[0].http_body == errors[1].http_body
    assert [error.headers["stripe-should-retry"] for error in errors] == ["false", "false"]
    assert control.payments(claim_id) == []
    assert control.calls()[-2]["outcome"] == "failed"


def test_an_error_500_after_execution_is_stored_and_the_money_has_moved(
    control: SandboxControl, pay: Pay, claim_id: str
) -> None:
    control.fault("transfers", "error_500_after", match=claim_id)

    for _ in range(2):
        with pytest.raises(stripe.APIError):
            pay()
    assert len(control.payments(claim_id)) == 1


def test_a_forgotten_key_executes_again(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    first = pay()
    control.fault("transfers", "forget_key", match=claim_id)

    assert [first, pay()] == [payment.id for payment in control.payments(claim_id)]
    assert len(control.payments(claim_id)) == 2


def test_a_receiver_may_answer_the_old_result_to_another_request(
    client: stripe.StripeClient, control: SandboxControl, pay: Pay, claim_id: str, key: str
) -> None:
    """As Qonto and Worldline do: nobody who goes by the answer alone can tell that the request was changed."""
    made = pay()
    control.fault("transfers", "old_answer")

    answered = client.v1.transfers.create(
        {"amount": 900, "currency": "eur", "destination": "acct_b"}, {"idempotency_key": key}
    )
    assert (answered.id, answered.amount, answered.destination) == (made, 500, "acct_a")
    assert control.calls()[-1]["outcome"] == "replayed"
    with pytest.raises(stripe.IdempotencyError):
        client.v1.transfers.create(
            {"amount": 900, "currency": "eur", "destination": "acct_b"}, {"idempotency_key": key}
        )


def test_the_same_request_uses_no_old_answer_up(control: SandboxControl, pay: Pay) -> None:
    control.fault("transfers", "old_answer")

    assert pay() == pay()
    assert [fault["left"] for fault in control.faults()] == [1]


def test_a_rate_limit_is_not_stored(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    control.fault("transfers", "rate_limit", match=claim_id, times=2)

    for _ in range(2):
        with pytest.raises(stripe.RateLimitError):
            pay()
    assert [pay()] == [payment.id for payment in control.payments(claim_id)]


def test_a_fault_hits_only_what_it_names_and_is_used_up(control: SandboxControl, pay: Pay, claim_id: str) -> None:
    control.fault("transfers", "error_500", match="another claim")
    control.fault("emails", "error_500")
    control.fault("transfers", "drop_before", method="GET")

    pay()
    assert [fault["left"] for fault in control.faults()] == [1, 1, 1]
    control.clear_faults()
    assert control.faults() == []


@pytest.mark.parametrize(
    "fault",
    [
        {"at": "moon", "kind": "drop_after"},
        {"at": "emails", "kind": "explode"},
        {"at": "emails", "kind": "rate_limit", "times": 0},
    ],
)
def test_a_fault_that_is_none_is_refused(control: SandboxControl, fault: dict[str, object]) -> None:
    with pytest.raises(Rejected, match="sandbox answered 422"):
        control.fault(**fault)  # type: ignore[arg-type]  # wrong on purpose
