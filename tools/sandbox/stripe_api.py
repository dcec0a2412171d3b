"""
Stripe's transfers: making one, reading one, listing them. This is where money moves.

A transfer is committed in one transaction with the answer under its key and with the log, before the answer leaves.
Sources: https://docs.stripe.com/api/transfers and the SDK's `stripe.Transfer`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from starlette.routing import Route

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.exchange import Exchange, Execution
from tools.sandbox.ids import new_id
from tools.sandbox.settings import Settings
from tools.sandbox.stripe_parameters import Order, bound, no_such, transfer_order, whole
from tools.sandbox.stripe_service import StripeService, error

LIST_FILTERS = {"transfer_group", "destination", "limit", "starting_after", "created"} | {
    f"created[{end}]" for end in ("gt", "gte", "lt", "lte")
}


@dataclass(frozen=True, slots=True)
class StripeApi:
    """The calls of Stripe's API that the sandbox speaks."""

    exchange: Exchange
    settings: Settings
    service: StripeService

    def routes(self) -> list[Route]:
        """Return the routes; the last one takes what this sandbox does not speak."""
        endpoint = self.exchange.endpoint
        return [
            Route("/v1/transfers", endpoint(self.service, self.create), methods=["POST"]),
            Route("/v1/transfers", endpoint(self.service, self.page), methods=["GET"]),
            Route("/v1/transfers/{id}", endpoint(self.service, self.retrieve), methods=["GET"]),
            Route(
                "/v1/{rest:path}",
                endpoint(self.service, self.unknown),
                methods=["GET", "POST", "DELETE"],
            ),
        ]

    INSERT = """
        insert into transfers (id, created, destination, transfer_group, claim_id, key, body)
        values (:id, :created, :destination, :transfer_group, :claim_id, :key, :body)
    """

    def create(self, call: Call) -> Execution:
        """Prepare a transfer. What the business says no to is stored under the key like a success."""
        order = transfer_order(call)

        def execute() -> Answer:
            if refused := self._refused(call, order):
                return refused
            transfer = _transfer(order)
            answer = json_answer(200, transfer, executed=True)
            self.exchange.store.rows(
                self.INSERT,
                id=transfer["id"],
                created=transfer["created"],
                destination=transfer["destination"],
                transfer_group=transfer["transfer_group"],
                claim_id=order.metadata.get("claim_id"),
                key=call.key,
                body=answer.body.decode(),
            )
            return answer

        return execute

    ONE = "select body from transfers where id = :id"

    def retrieve(self, call: Call) -> Execution:
        """Prepare to read one transfer."""
        transfer_id = call.path.rpartition("/")[2]
        row = self.exchange.store.row(self.ONE, id=transfer_id)
        if row is None:
            raise Refusal(no_such(call, 404, "transfer", transfer_id, "id"))
        return lambda: Answer(200, row["body"].encode())

    LIST = """
        select body from transfers
        where (:transfer_group is null or transfer_group = :transfer_group)
          and (:destination is null or destination = :destination)
          and (:gte is null or created >= :gte) and (:gt is null or created > :gt)
          and (:lte is null or created <= :lte) and (:lt is null or created < :lt)
          and (:after is null or number < (select number from transfers where id = :after))
        order by number desc limit :limit
    """

    def page(self, call: Call) -> Execution:
        """Prepare to list transfers, newest first."""
        for name in call.query.keys() - LIST_FILTERS:
            raise Refusal(error(call, 400, f"Unknown parameter: {name}", code="parameter_unknown", param=name))
        limit = whole(call, call.query, "limit", least=1, most=100, absent=10)
        exact = bound(call, "created")
        after = call.query.get("starting_after")
        if after and self.exchange.store.row(self.ONE, id=after) is None:
            raise Refusal(no_such(call, 400, "transfer", after, "starting_after"))
        bounds = {end: bound(call, f"created[{end}]") for end in ("gte", "gt", "lte", "lt")}
        if exact is not None:
            bounds |= {"gte": exact, "lte": exact}
        filters = {name: call.query.get(name) for name in ("transfer_group", "destination")}
        rows = self.exchange.store.rows(self.LIST, **filters, **bounds, after=after, limit=limit + 1)
        page = {
            "object": "list",
            "data": [json.loads(row["body"]) for row in rows[:limit]],
            "has_more": len(rows) > limit,
            "url": "/v1/transfers",
        }
        return lambda: json_answer(200, page)

    def unknown(self, call: Call) -> Execution:
        """Refuse what this sandbox does not speak, as Stripe refuses a wrong URL."""
        raise Refusal(error(call, 404, f"There is no such URL here ({call.method}: {call.path})."))

    def _refused(self, call: Call, order: Order) -> Answer | None:
        destination = order.texts["destination"]
        if destination.startswith("acct_closed"):
            said = f"The account {destination!r} is closed and takes no transfers."
            return error(call, 400, said, code="account_closed", param="destination")
        if destination.startswith("acct_missing"):
            return no_such(call, 400, "destination", destination, "destination")
        if order.amount > self.settings.balance:
            said = "The available balance of this account does not cover the transfer."
            return error(call, 400, said, code="balance_insufficient")
        return None


def _transfer(order: Order) -> dict[str, Any]:
    """Return a new transfer in Stripe's full shape."""
    transfer_id = new_id("tr_", 24)
    return {
        "id": transfer_id,
        "object": "transfer",
        "amount": order.amount,
        "amount_reversed": 0,
        "balance_transaction": new_id("txn_", 24),
        "created": int(time.time()),
        "currency": order.currency,
        "description": order.texts.get("description"),
        "destination": order.texts["destination"],
        "destination_payment": new_id("py_", 24),
        "livemode": False,
        "metadata": dict(order.metadata),
        "reversals": {
            "object": "list",
            "data": [],
            "has_more": False,
            "total_count": 0,
            "url": f"/v1/transfers/{transfer_id}/reversals",
        },
        "reversed": False,
        "source_transaction": order.texts.get("source_transaction"),
        "source_type": order.texts.get("source_type", "card"),
        "transfer_group": order.texts.get("transfer_group"),
    }
