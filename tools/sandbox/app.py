"""The sandbox as one ASGI application: every service on one port, told apart by path."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tools.sandbox.calls import CallLog
from tools.sandbox.chat_api import ChatApi
from tools.sandbox.chat_service import ChatService
from tools.sandbox.claims_api import ClaimsApi
from tools.sandbox.claims_service import ClaimsService
from tools.sandbox.control_api import ControlApi
from tools.sandbox.exchange import Exchange
from tools.sandbox.faults import Faults
from tools.sandbox.gate import Gate
from tools.sandbox.keys import Keys
from tools.sandbox.messages_api import MessagesApi, MessageService
from tools.sandbox.settings import Settings
from tools.sandbox.store import SandboxStore
from tools.sandbox.stripe_api import StripeApi
from tools.sandbox.stripe_service import StripeService
from tools.sandbox.tickets_api import TicketsApi
from tools.sandbox.tickets_service import TicketService


def sandbox_app(store: SandboxStore, gate: Gate) -> Starlette:
    """Return the application over *store*. Close *gate* to end what is held."""
    exchange = Exchange(store=store, keys=Keys(store), faults=Faults(store), log=CallLog(store), gate=gate)
    settings = Settings(store)
    return Starlette(
        routes=[
            *ControlApi(exchange, settings).routes(),
            *StripeApi(exchange, settings, StripeService()).routes(),
            *MessagesApi(exchange, MessageService()).routes(),
            *TicketsApi(exchange, TicketService()).routes(),
            *ChatApi(exchange, ChatService()).routes(),
            *ClaimsApi(exchange, ClaimsService()).routes(),
        ],
        exception_handlers={HTTPException: _no_such_url},
    )


async def _no_such_url(request: Request, error: Exception) -> Response:
    """Answer in JSON what no service takes; Starlette would answer text."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = f"there is no {request.method} {request.url.path} here"
    return JSONResponse({"error": said}, status)
