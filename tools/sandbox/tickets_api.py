"""
A ticket desk in Zendesk's shape: opening a ticket, reading one, listing them by `external_id` and by cursor.

An `external_id` is the caller's own word for a ticket. It is not unique: whoever opens two tickets with one has two.
Sources: https://developer.zendesk.com/api-reference/ticketing/tickets/tickets and .../introduction/pagination.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.routing import Route

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.exchange import Exchange, Execution
from tools.sandbox.tickets_service import TicketService, record_invalid

MAX_PAGE = 100
Text = Annotated[str, Field(max_length=65_535)]


class Comment(BaseModel):
    """The first comment of a ticket, which is its description."""

    model_config = ConfigDict(extra="forbid", strict=True)

    body: Text = ""
    public: bool = True


class Requester(BaseModel):
    """Who asks; an address that begins with `suspended` is one the desk does not take tickets from."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=255)]
    email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=255)]


class Ticket(BaseModel):
    """A ticket as it is handed in."""

    model_config = ConfigDict(extra="forbid", strict=True)

    subject: Annotated[str, Field(max_length=255)] = ""
    comment: Comment
    external_id: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    requester: Requester | None = None
    tags: list[str] = []


class TicketRequest(BaseModel):
    """The body of `POST /api/v2/tickets.json`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class TicketsApi:
    """The calls of the ticket desk."""

    exchange: Exchange
    service: TicketService

    def routes(self) -> list[Route]:
        """Return the routes; Zendesk takes each with and without `.json`."""
        endpoint = self.exchange.endpoint
        found = []
        for ending in ("", ".json"):
            tickets, ticket = f"/api/v2/tickets{ending}", f"/api/v2/tickets/{{id:int}}{ending}"
            found += [
                Route(tickets, endpoint(self.service, self.open), methods=["POST"]),
                Route(tickets, endpoint(self.service, self.page), methods=["GET"]),
                Route(ticket, endpoint(self.service, self.show), methods=["GET"]),
            ]
        return found

    INSERT = """
        insert into tickets (external_id, body) values (:external_id, :body) returning number
    """
    COMPLETE = "update tickets set body = :body where number = :number"

    def open(self, call: Call) -> Execution:
        """Prepare to open a ticket."""
        ticket = _ticket(call)

        def execute() -> Answer:
            row = self.exchange.store.row(self.INSERT, external_id=ticket.external_id, body="")
            assert row is not None
            record = _record(ticket, int(row["number"]))
            self.exchange.store.rows(self.COMPLETE, number=record["id"], body=json.dumps(record))
            audit = {"ticket_id": record["id"], "created_at": record["created_at"], "events": []}
            location = {"Location": record["url"]}
            return json_answer(201, {"ticket": record, "audit": audit}, executed=True, headers=location)

        return execute

    ONE = "select body from tickets where number = :number"

    def show(self, call: Call) -> Execution:
        """Prepare to read one ticket."""
        name = call.path.rpartition("/")[2].removesuffix(".json")
        row = self.exchange.store.row(self.ONE, number=int(name))
        if row is None:
            raise Refusal(json_answer(404, {"error": "RecordNotFound", "description": "Not found"}))
        return lambda: json_answer(200, {"ticket": json.loads(row["body"])})

    # Several external ids in one question are separated by commas, as the real list takes them.
    LIST = """
        select number, body from tickets
        where (:external_ids is null or instr(:external_ids, ',' || external_id || ',') > 0) and number > :after
        order by number limit :limit
    """

    def page(self, call: Call) -> Execution:
        """Prepare to list tickets, first opened first; what is listed is what there is when the answer is made."""
        size, after = _page_asked(call)
        asked = call.query.get("external_id")
        external_ids = f",{asked}," if asked is not None else None

        def execute() -> Answer:
            rows = self.exchange.store.rows(self.LIST, external_ids=external_ids, after=after, limit=size + 1)
            shown = rows[:size]
            cursor = str(shown[-1]["number"]) if shown else None
            meta = {"has_more": len(rows) > size, "after_cursor": cursor, "before_cursor": None}
            return json_answer(200, {"tickets": [json.loads(row["body"]) for row in shown], "meta": meta})

        return execute


def _page_asked(call: Call) -> tuple[int, int]:
    """Return the page's size and the number of the ticket after which it begins."""
    size, after = call.query.get("page[size]", str(MAX_PAGE)), call.query.get("page[after]", "0")
    if not size.isdecimal() or not 1 <= int(size) <= MAX_PAGE:
        raise Refusal(json_answer(400, {"error": "InvalidPaginationSize", "description": "page[size] is 1 to 100"}))
    if not after.isdecimal() or len(after) > 18:
        raise Refusal(
            json_answer(400, {"error": "InvalidPaginationParameter", "description": "page[after] is invalid"})
        )
    return int(size), int(after)


def _ticket(call: Call) -> Ticket:
    """Return the ticket of *call*; refuse what Zendesk refuses."""
    try:
        ticket = TicketRequest.model_validate_json(call.body).ticket
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "ticket"
        raise Refusal(record_invalid(field, f"{field}: {first['msg']}", "InvalidValue")) from error
    if not ticket.comment.body.strip():
        raise Refusal(record_invalid("base", "Description: cannot be blank", "BlankValue"))
    if ticket.requester and ticket.requester.email.startswith("suspended"):
        said = f"Requester: {ticket.requester.name} is suspended."
        raise Refusal(record_invalid("requester", said, "InvalidValue"))
    return ticket


def _record(ticket: Ticket, number: int) -> dict[str, Any]:
    """Return a ticket in the shape in which Zendesk answers it."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "id": number,
        "url": f"/api/v2/tickets/{number}.json",
        "external_id": ticket.external_id,
        "subject": ticket.subject,
        "raw_subject": ticket.subject,
        "description": ticket.comment.body,
        "status": "new",
        "priority": None,
        "type": None,
        "requester": ticket.requester.model_dump() if ticket.requester else None,
        "tags": ticket.tags,
        "via": {"channel": "api"},
        "created_at": now,
        "updated_at": now,
    }
