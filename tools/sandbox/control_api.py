"""
The control of the sandbox, under `/sandbox/`: counting money, messages and tickets, ordering faults, letting held answers go.

It is not part of the outside world: its calls are not logged, need no API key and meet no fault.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tools.sandbox.exchange import Exchange
from tools.sandbox.faults import Fault
from tools.sandbox.settings import Settings


class Balance(BaseModel):
    """The body of `PUT /sandbox/balance`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    amount: Annotated[int, Field(ge=0, le=2**53)]


@dataclass(frozen=True, slots=True)
class ControlApi:
    """The control calls of one sandbox."""

    exchange: Exchange
    settings: Settings

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/healthz", self.health, methods=["GET"]),
            Route("/sandbox/payments", self.payments, methods=["GET"]),
            Route("/sandbox/messages", self.messages, methods=["GET"]),
            Route("/sandbox/tickets", self.tickets, methods=["GET"]),
            Route("/sandbox/chat", self.chat, methods=["GET"]),
            Route("/sandbox/calls", self.calls, methods=["GET"]),
            Route("/sandbox/faults", self.faults, methods=["GET"]),
            Route("/sandbox/faults", self.add_fault, methods=["POST"]),
            Route("/sandbox/faults", self.clear_faults, methods=["DELETE"]),
            Route("/sandbox/release", self.release, methods=["POST"]),
            Route("/sandbox/held", self.held, methods=["GET"]),
            Route("/sandbox/balance", self.set_balance, methods=["PUT"]),
        ]

    async def health(self, _request: Request) -> Response:
        """Say that the sandbox is up and its database answers."""
        self.exchange.store.row("select 1")
        return JSONResponse({"status": "ok"})

    PAYMENTS = """
        select claim_id, key, body from transfers
        where :claim_id is null or claim_id = :claim_id order by number
    """

    async def payments(self, request: Request) -> Response:
        """Count the executed transfers, first made first; `claim_id` is what their metadata says."""
        rows = self.exchange.store.rows(self.PAYMENTS, claim_id=request.query_params.get("claim_id"))
        payments = [_payment(json.loads(row["body"]), row["claim_id"], row["key"]) for row in rows]
        return JSONResponse(
            {
                "count": len(payments),
                "total": sum(p["amount"] for p in payments),
                "payments": payments,
            }
        )

    MESSAGES = "select claim_id, key, body from emails where :claim_id is null or claim_id = :claim_id order by number"

    async def messages(self, request: Request) -> Response:
        """Count the messages taken, first taken first."""
        rows = self.exchange.store.rows(self.MESSAGES, claim_id=request.query_params.get("claim_id"))
        messages = [{**json.loads(row["body"]), "claim_id": row["claim_id"], "key": row["key"]} for row in rows]
        return JSONResponse({"count": len(messages), "messages": messages})

    TICKETS = "select body from tickets where :external_id is null or external_id = :external_id order by number"

    async def tickets(self, request: Request) -> Response:
        """Count the tickets opened, first opened first."""
        rows = self.exchange.store.rows(self.TICKETS, external_id=request.query_params.get("external_id"))
        return JSONResponse({"count": len(rows), "tickets": [json.loads(row["body"]) for row in rows]})

    CHAT = (
        "select channel, body from chat_messages where :channel is null or channel = :channel order by ts_us, channel"
    )

    async def chat(self, request: Request) -> Response:
        """Count the chat messages posted, first posted first."""
        rows = self.exchange.store.rows(self.CHAT, channel=request.query_params.get("channel"))
        messages = [{**json.loads(row["body"]), "channel": row["channel"]} for row in rows]
        return JSONResponse({"count": len(messages), "messages": messages})

    async def calls(self, _request: Request) -> Response:
        """List every call, first come first."""
        calls = self.exchange.log.all()
        return JSONResponse({"count": len(calls), "calls": calls})

    async def faults(self, _request: Request) -> Response:
        """List the faults that were ordered, and how often each still hits."""
        return JSONResponse({"faults": self.exchange.faults.all()})

    async def add_fault(self, request: Request) -> Response:
        """Order a fault."""
        try:
            fault = Fault.model_validate_json(await request.body())
        except ValidationError as error:
            return _refused(error)
        self.exchange.faults.add(fault)
        return JSONResponse(fault.model_dump(), 201)

    async def clear_faults(self, _request: Request) -> Response:
        """Order nothing any more."""
        return JSONResponse({"cleared": self.exchange.faults.clear()})

    async def release(self, _request: Request) -> Response:
        """Let all held answers go."""
        return JSONResponse({"released": self.exchange.gate.release()})

    async def held(self, request: Request) -> Response:
        """Wait until `count` calls are held, `seconds` at most, and say how many are."""
        try:
            count = int(request.query_params.get("count", "0"))
            seconds = min(float(request.query_params.get("seconds", "0")), 600.0)
        except ValueError:
            return JSONResponse({"error": "count is an integer and seconds a number"}, 422)
        return JSONResponse({"held": await self.exchange.gate.wait_held(count, seconds)})

    async def set_balance(self, request: Request) -> Response:
        """Let transfers above this amount fail."""
        try:
            balance = Balance.model_validate_json(await request.body())
        except ValidationError as error:
            return _refused(error)
        self.settings.set_balance(balance.amount)
        return JSONResponse(balance.model_dump())


def _payment(transfer: dict[str, Any], claim_id: str | None, key: str | None) -> dict[str, Any]:
    same = {name: transfer[name] for name in ("id", "amount", "currency", "description", "created")}
    return {**same, "payee": transfer["destination"], "claim_id": claim_id, "key": key}


def _refused(error: ValidationError) -> Response:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"])) or "the body"
    return JSONResponse({"error": f"{field}: {first['msg']}"}, 422)
