"""The sandbox as the official Stripe SDK sees it."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
import stripe

from tools.sandbox import SandboxControl, SandboxProcess

AtOnce = Callable[[Callable[[int], object], int], list[object]]


def transfer(client: stripe.StripeClient, claim_id: str, key: str | None = None, **changes: object) -> stripe.Transfer:
    params: dict[str, object] = {
        "amount": 1840_00,
        "currency": "eur",
        "destination": "acct_mara",
        "transfer_group": f"group-{claim_id}",
        "description": f"Claim {claim_id}",
        "metadata": {"claim_id": claim_id},
    }
    options: stripe.RequestOptions = {"idempotency_key": key} if key else {}
    return client.v1.transfers.create({**params, **changes}, options)  # type: ignore[arg-type]  # wrong ones are tested


def test_a_transfer_has_the_full_shape_of_stripes(client: stripe.StripeClient, claim_id: str) -> None:
    made = transfer(client, claim_id)

    record = made.to_dict()
    assert isinstance(made, stripe.Transfer)
    assert isinstance(made.reversals, stripe.ListObject)
    assert record.keys() == set(stripe.Transfer.__annotations__) - {"OBJECT_NAME"} - {"_inner_class_types"}
    assert (made.id[:3], made.object, made.amount, made.currency) == (
        "tr_",
        "transfer",
        1840_00,
        "eur",
    )
    assert record["metadata"] == {"claim_id": claim_id}
    assert (made.amount_reversed, made.reversed, made.livemode, made.source_type) == (
        0,
        False,
        False,
        "card",
    )
    assert client.v1.transfers.retrieve(made.id).to_dict() == record


def test_answers_carry_stripes_headers(client: stripe.StripeClient, claim_id: str, key: str) -> None:
    first, second = transfer(client, claim_id, key), transfer(client, claim_id, key)

    assert first.last_response
    assert second.last_response
    before, after = first.last_response.headers, second.last_response.headers
    assert before["request-id"].startswith("req_")
    assert before["request-id"] != after["request-id"]
    assert after["original-request"] == before["request-id"]
    assert before["idempotency-key"] == after["idempotency-key"] == key
    assert "idempotent-replayed" not in before
    assert after["idempotent-replayed"] == "true"
    assert before["stripe-version"]


def test_the_same_key_and_parameters_get_the_same_bytes_and_execute_once(
    client: stripe.StripeClient, control: SandboxControl, claim_id: str, key: str
) -> None:
    first, second = transfer(client, claim_id, key), transfer(client, claim_id, key)

    assert first.last_response
    assert second.last_response
    assert second.last_response.body == first.last_response.body
    assert len(control.payments(claim_id)) == 1


def test_another_key_is_another_transfer(
    client: stripe.StripeClient, control: SandboxControl, claim_id: str, key: str
) -> None:
    transfer(client, claim_id, key)
    transfer(client, claim_id, f"{key}-2")
    transfer(client, claim_id)

    assert len(control.payments(claim_id)) == 3


def test_the_same_key_with_another_payload_is_an_idempotency_error(
    client: stripe.StripeClient, control: SandboxControl, claim_id: str, key: str
) -> None:
    transfer(client, claim_id, key)

    with pytest.raises(stripe.IdempotencyError) as refused:
        transfer(client, claim_id, key, amount=1)
    assert (refused.value.http_status, len(control.payments(claim_id))) == (400, 1)


def test_parameters_in_another_order_are_the_same_request(
    sandbox: SandboxProcess, control: SandboxControl, claim_id: str, key: str
) -> None:
    headers = {"Authorization": "Bearer sk_test_1", "Idempotency-Key": key}
    params = {
        "amount": "5",
        "currency": "eur",
        "destination": "acct_a",
        "metadata[claim_id]": claim_id,
    }
    first = httpx.post(f"{sandbox.url}/v1/transfers", data=params, headers=headers)
    second = httpx.post(f"{sandbox.url}/v1/transfers", data=dict(reversed(params.items())), headers=headers)

    assert (first.status_code, second.content) == (200, first.content)


def test_a_key_in_use_is_a_conflict_and_not_stored(
    client: stripe.StripeClient,
    control: SandboxControl,
    claim_id: str,
    key: str,
    at_once: AtOnce,
) -> None:
    control.fault("transfers", "hold_before", match=claim_id)

    def first_or_second(number: int) -> object:
        if number == 0:
            return transfer(client, claim_id, key).id
        control.wait_held()
        with pytest.raises(stripe.APIError) as refused:
            transfer(client, claim_id, key)
        control.release()
        return refused.value

    made, refused = at_once(first_or_second, 2)

    assert isinstance(refused, stripe.APIError)
    assert (refused.http_status, refused.error and refused.error.code) == (
        409,
        "idempotency_key_in_use",
    )
    assert refused.headers
    assert refused.headers["stripe-should-retry"] == "true"
    assert transfer(client, claim_id, key).id == made
    assert len(control.payments(claim_id)) == 1


def test_two_clients_racing_with_one_key_pay_once(
    sandbox: SandboxProcess, control: SandboxControl, claim_id: str, key: str, at_once: AtOnce
) -> None:
    clients = [stripe.StripeClient("sk_test_race", base_addresses={"api": sandbox.url}) for _ in range(8)]

    results = at_once(lambda number: transfer(clients[number], claim_id, key).id, 8)

    assert len(set(results)) == 1
    assert [payment.id for payment in control.payments(claim_id)] == results[:1]


def test_a_refusal_of_the_business_is_stored_under_the_key(
    client: stripe.StripeClient, control: SandboxControl, claim_id: str, key: str
) -> None:
    control.set_balance(100)
    with pytest.raises(stripe.InvalidRequestError) as first:
        transfer(client, claim_id, key)
    control.set_balance(99_999_999)
    with pytest.raises(stripe.InvalidRequestError) as second:
        transfer(client, claim_id, key)

    assert first.value.code == "balance_insufficient"
    assert second.value.http_body == first.value.http_body
    assert second.value.headers
    assert second.value.headers["idempotent-replayed"] == "true"
    assert control.payments(claim_id) == []


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"amount": 0}, "parameter_invalid_integer", "amount"),
        ({"amount": -5}, "parameter_invalid_integer", "amount"),
        ({"amount": "12.50"}, "parameter_invalid_integer", "amount"),
        ({"amount": 100_000_000}, "amount_too_large", "amount"),
        ({"currency": "xyz"}, None, "currency"),
        ({"destination": "mara"}, "resource_missing", "destination"),
        ({"destination": ""}, "parameter_missing", "destination"),
        ({"payee": "acct_1"}, "parameter_unknown", "payee"),
        ({"metadata": {"note": "x" * 501}}, None, "metadata"),
    ],
)
def test_a_wrong_parameter_is_refused_before_execution_and_not_stored(
    *,
    client: stripe.StripeClient,
    control: SandboxControl,
    claim_id: str,
    key: str,
    change: dict[str, object],
    code: str | None,
    param: str,
) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        transfer(client, claim_id, key, **change)

    assert (refused.value.http_status, refused.value.code, refused.value.param) == (
        400,
        code,
        param,
    )
    assert transfer(client, claim_id, key).id, "the key is still free"
    assert len(control.payments(claim_id)) == 1


@pytest.mark.parametrize(
    ("destination", "code"),
    [("acct_closed_1", "account_closed"), ("acct_missing_1", "resource_missing")],
)
def test_an_error_object_is_stripes(client: stripe.StripeClient, claim_id: str, destination: str, code: str) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        transfer(client, claim_id, destination=destination)

    error = refused.value.error
    assert error
    assert (error.type, error.code, error.param) == ("invalid_request_error", code, "destination")
    assert error.doc_url == f"https://docs.stripe.com/error-codes/{code.replace('_', '-')}"
    assert refused.value.request_id
    assert refused.value.request_id in str(error["request_log_url"])


def test_an_unknown_transfer_is_missing(client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client.v1.transfers.retrieve("tr_nowhere")

    assert (refused.value.http_status, refused.value.code, refused.value.param) == (
        404,
        "resource_missing",
        "id",
    )


def test_what_the_sandbox_does_not_speak_is_refused(client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client.v1.refunds.create({"charge": "ch_1"})

    assert refused.value.http_status == 404


def test_a_key_that_is_no_test_key_is_401(sandbox: SandboxProcess, claim_id: str) -> None:
    stranger = stripe.StripeClient("pk_test_1", base_addresses={"api": sandbox.url})

    with pytest.raises(stripe.AuthenticationError) as refused:
        transfer(stranger, claim_id)
    assert refused.value.http_status == 401


def test_basic_authentication_is_taken_too(sandbox: SandboxProcess) -> None:
    def status(auth: tuple[str, str] | None) -> int:
        return httpx.get(f"{sandbox.url}/v1/transfers", auth=auth).status_code

    assert [status(("sk_test_1", "")), status(("sk_live_1", "")), status(None)] == [200, 401, 401]


def test_a_key_over_255_characters_is_refused(
    client: stripe.StripeClient, control: SandboxControl, claim_id: str
) -> None:
    assert transfer(client, claim_id, "k" * 254 + claim_id[-1])

    with pytest.raises(stripe.InvalidRequestError) as refused:
        transfer(client, claim_id, "k" * 256)
    assert (refused.value.http_status, len(control.payments(claim_id))) == (400, 1)


def test_listing_filters_and_pages_newest_first(client: stripe.StripeClient, claim_id: str) -> None:
    group, other = f"group-{claim_id}", f"other-{claim_id}"
    ids = [transfer(client, claim_id, destination=f"acct_{other}{n}").id for n in range(5)]
    transfer(client, claim_id, transfer_group=other)

    page = client.v1.transfers.list({"transfer_group": group, "limit": 2})

    assert [made.id for made in page.data] == [ids[4], ids[3]]
    assert page.has_more
    assert [made.id for made in page.auto_paging_iter()] == ids[::-1]
    listed = client.v1.transfers.list({"destination": f"acct_{other}2"})
    assert ([made.id for made in listed.data], listed.has_more) == ([ids[2]], False)


def test_listing_filters_by_time(client: stripe.StripeClient, claim_id: str) -> None:
    made = transfer(client, claim_id)
    group = f"group-{claim_id}"

    def found(created: stripe.params.TransferListParamsCreated) -> int:
        return len(client.v1.transfers.list({"transfer_group": group, "created": created}).data)

    assert found({"gte": made.created}) == found({"lte": made.created}) == 1
    assert found({"gte": made.created + 1}) == found({"gt": made.created}) == 0
    assert found({"lt": made.created}) == 0


def test_listing_refuses_what_it_does_not_know(client: stripe.StripeClient) -> None:
    for params in ({"limit": 101}, {"starting_after": "tr_nowhere"}, {"colour": "red"}):
        with pytest.raises(stripe.InvalidRequestError):
            client.v1.transfers.list(params)  # type: ignore[arg-type]  # wrong on purpose


def test_every_call_is_logged_with_what_became_of_it(
    client: stripe.StripeClient, control: SandboxControl, claim_id: str, key: str
) -> None:
    made = transfer(client, claim_id, key)
    transfer(client, claim_id, key)
    with pytest.raises(stripe.IdempotencyError):
        transfer(client, claim_id, key, amount=1)
    client.v1.transfers.retrieve(made.id)

    calls = control.calls()[-4:]
    assert [(c["method"], c["key"], c["outcome"], c["status"], c["executed"]) for c in calls] == [
        ("POST", key, "answered", 200, True),
        ("POST", key, "replayed", 200, False),
        ("POST", key, "refused", 400, False),
        ("GET", None, "answered", 200, False),
    ]
    assert calls[3]["path"] == f"/v1/transfers/{made.id}"
