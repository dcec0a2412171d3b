"""
A chat in Slack's shape: posting a message with metadata, and walking a channel's history with a cursor.

A message is named by its channel and its `ts`, seconds with six more digits, and no two in a channel have the same. The history has
metadata only when asked for it. Sources: https://docs.slack.dev/reference/methods/chat.postMessage and .../conversations.history.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.routing import Route

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.chat_service import ChatService, error
from tools.sandbox.exchange import Exchange, Execution

CHANNEL = re.compile(r"[CDG][A-Z0-9]{8,20}")
TS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?")
MAX_TEXT = 40_000
MAX_PAGE = 999


class Metadata(BaseModel):
    """What an app attaches to a message for other apps."""

    model_config = ConfigDict(extra="forbid", strict=True)

    event_type: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,255}$")]
    event_payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """A message, checked."""

    channel: str
    text: str
    metadata: Metadata | None


@dataclass(frozen=True, slots=True)
class ChatApi:
    """The calls of the chat."""

    exchange: Exchange
    service: ChatService

    def routes(self) -> list[Route]:
        """Return the routes."""
        endpoint = self.exchange.endpoint
        return [
            Route("/api/chat.postMessage", endpoint(self.service, self.post), methods=["POST"]),
            Route("/api/conversations.history", endpoint(self.service, self.history), methods=["GET"]),
        ]

    NEWEST = "select ts_us from chat_messages where channel = :channel order by ts_us desc limit 1"
    INSERT = "insert into chat_messages (channel, ts_us, body) values (:channel, :ts_us, :body)"

    def post(self, call: Call) -> Execution:
        """Prepare to post a message."""
        message = _message(call)

        def execute() -> Answer:
            newest = self.exchange.store.row(self.NEWEST, channel=message.channel)
            ts_us = max(time.time_ns() // 1000, newest["ts_us"] + 1 if newest else 0)
            record = _record(message, ts_us)
            body = json.dumps(record)
            self.exchange.store.rows(self.INSERT, channel=message.channel, ts_us=ts_us, body=body)
            said = {"ok": True, "channel": message.channel, "ts": record["ts"], "message": record}
            return json_answer(200, said, executed=True)

        return execute

    HISTORY = """
        select ts_us, body from chat_messages
        where channel = :channel and ts_us >= :oldest_us and ts_us <= :latest_us
        order by ts_us desc limit :limit
    """

    def history(self, call: Call) -> Execution:
        """Prepare to read a page of a channel's history, newest first; what is read is what there is when the answer is made."""
        channel = call.query.get("channel", "")
        if not _exists(channel):
            raise Refusal(error("channel_not_found"))
        limit = _limit(call)
        oldest_us, latest_us = _bounds(call)
        with_metadata = call.query.get("include_all_metadata", "").lower() in ("true", "1")

        def execute() -> Answer:
            rows = self.exchange.store.rows(
                self.HISTORY, channel=channel, oldest_us=oldest_us, latest_us=latest_us, limit=limit + 1
            )
            shown = [json.loads(row["body"]) for row in rows[:limit]]
            if not with_metadata:
                shown = [{name: value for name, value in found.items() if name != "metadata"} for found in shown]
            more = len(rows) > limit
            page: dict[str, Any] = {"ok": True, "messages": shown, "has_more": more, "pin_count": 0}
            if more:
                page["response_metadata"] = {"next_cursor": _cursor(rows[limit]["ts_us"])}
            return json_answer(200, page)

        return execute


def _message(call: Call) -> Message:
    """Return the message of *call*; refuse what Slack refuses, in its order."""
    given = _json(call)
    channel, text = given.get("channel"), given.get("text")
    if not isinstance(channel, str) or not _exists(channel):
        raise Refusal(error("channel_not_found"))
    if channel.startswith("C0ARCHIVED"):
        raise Refusal(error("is_archived"))
    if not isinstance(text, str) or not text:
        raise Refusal(error("no_text"))
    if len(text) > MAX_TEXT:
        raise Refusal(error("msg_too_long"))
    try:
        metadata = Metadata.model_validate(given["metadata"]) if given.get("metadata") is not None else None
    except ValidationError:
        raise Refusal(error("invalid_metadata_format")) from None
    return Message(channel, text, metadata)


def _json(call: Call) -> dict[str, Any]:
    try:
        given = json.loads(call.text)
    except ValueError:
        raise Refusal(error("invalid_json")) from None
    if not isinstance(given, dict):
        raise Refusal(error("json_not_object"))
    return given


def _exists(channel: str) -> bool:
    return CHANNEL.fullmatch(channel) is not None and not channel.startswith("C0MISSING")


def _limit(call: Call) -> int:
    limit = call.query.get("limit", "100")
    if not limit.isdecimal() or not 1 <= int(limit) <= MAX_PAGE:
        raise Refusal(error("invalid_limit"))
    return int(limit)


def _bounds(call: Call) -> tuple[int, int]:
    """Return the first and the last microsecond of what is asked for; a bound itself is out unless `inclusive`."""
    beyond = 0 if call.query.get("inclusive", "").lower() in ("true", "1") else 1
    oldest = _microseconds(call, "oldest")
    latest = _microseconds(call, "latest")
    oldest_us = 0 if oldest is None else oldest + beyond
    latest_us = 2**62 if latest is None else latest - beyond
    if cursor := call.query.get("cursor"):
        latest_us = min(latest_us, _from_cursor(cursor))
    return oldest_us, latest_us


def _microseconds(call: Call, name: str) -> int | None:
    text = call.query.get(name)
    if text is None:
        return None
    found = TS.fullmatch(text)
    if not found:
        raise Refusal(error(f"invalid_ts_{name}"))
    return int(found[1]) * 1_000_000 + int((found[2] or "0").ljust(6, "0"))


def _cursor(ts_us: int) -> str:
    return base64.b64encode(f"next_ts:{ts_us}".encode()).decode()


def _from_cursor(cursor: str) -> int:
    try:
        word, _, number = base64.b64decode(cursor, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        word, number = "", ""
    if word != "next_ts" or not number.isdecimal():
        raise Refusal(error("invalid_cursor"))
    return int(number)


def _record(message: Message, ts_us: int) -> dict[str, Any]:
    """Return a message in the shape in which Slack answers it."""
    record: dict[str, Any] = {
        "type": "message",
        "subtype": "bot_message",
        "text": message.text,
        "ts": f"{ts_us // 1_000_000}.{ts_us % 1_000_000:06d}",
        "bot_id": "B0SANDBOX",
    }
    if message.metadata:
        record["metadata"] = message.metadata.model_dump()
    return record
