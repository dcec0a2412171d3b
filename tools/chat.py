"""
The effect `post_message`: one message a slot in a chat that speaks Slack's API, which knows no keys.

It is done by act, and check only in doubt: the message carries the key in its metadata, and the look-up walks the channel's history
from shortly before the claim until it meets it. Slack answers a refusal with 200, so its words decide:

    ok                                                      the outcome
    the workspace does not let anybody post there           Declined
    our request, our token or our app is wrong              Rejected
    408, 429, 5xx, a fault on their side, no connection,    Unreachable
    no answer, no JSON, words we do not know

Of a fault Slack says that part of the call may have succeeded, and of words that are not in its list nobody can say more.

A worker that stands still between claim and call, for longer than its lease and the settle delay, posts a second message when it goes
on. A message that somebody deleted is not found again. A channel is given by its id, because the history takes no names.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from checkpointing.errors import Declined, Rejected, ToolError, Unreachable
from tools.effect import Effect, effect
from tools.receiver import Receiver
from tools.receivers import SLACK
from tools.wire import Answer, call

SLACK_URL = "https://slack.com"
EVENT_TYPE = "counterfoil_effect"
CHANNEL = re.compile(r"[CDG][A-Z0-9]{6,}")
PAGE = 200
"""
Messages a page of history, as Slack advises.

An app that is sold outside its marketplace gets 15, whatever it asks for, and one page a minute (since 2025-05): in a channel with more
than that since the claim its look-up is refused at the second page, so the effect stays in doubt until a person resolves it.
"""

AHEAD = timedelta(minutes=10)
"""How far this host's clock may be ahead of the chat's: the history is walked from this long before the claim."""

DECLINING = frozenset({
    "ekm_access_denied",
    "is_archived",
    "restricted_action",
    "restricted_action_read_only_channel",
    "restricted_action_thread_only_channel",
})  # fmt: skip
"""The workspace's own decision about who may post where; https://docs.slack.dev/reference/methods/chat.postMessage, as the next."""

REFUSING = frozenset({
    "access_denied", "account_inactive", "as_user_not_supported", "channel_not_found", "channel_type_not_supported",
    "deprecated_endpoint", "enterprise_is_restricted", "invalid_arg_name", "invalid_arguments", "invalid_array_arg", "invalid_auth",
    "invalid_charset", "invalid_form_data", "invalid_json", "invalid_metadata_format", "invalid_metadata_schema", "invalid_post_type",
    "json_not_object", "metadata_must_be_sent_from_app", "metadata_too_large", "method_deprecated",
    "missing_charset", "missing_post_type", "missing_scope", "msg_too_long", "no_permission", "no_text", "not_allowed_token_type",
    "not_authed", "not_in_channel", "team_access_not_granted", "token_expired", "token_revoked",
    "too_many_attachments", "two_factor_setup_required",
})  # fmt: skip
"""The request or the app is wrong, and nothing was posted. Whatever is in neither list leaves it open."""


def chat_effect(
    *, api_key: str, base_url: str = SLACK_URL, timeout_s: float = 10.0, receiver: Receiver = SLACK
) -> Effect:
    """
    Return the effect `post_message`, posting as the app of *api_key*, a bot's token (`xoxb-...`).

    Its keywords are `channel` (an id, `C...`), `text` and `key`; it answers `{"channel", "ts"}`, which name the message at Slack. The app
    must be in the channel, and needs the scopes `chat:write` and, for the look-up, `channels:history` (`groups:history` in private ones).
    *receiver* is another profile, for a chat that takes longer to show a new message.
    """
    chat = _Chat(base_url.rstrip("/"), api_key, timeout_s)

    @effect(receiver=receiver, name="post_message")
    def post_message(*, channel: str, text: str, key: str) -> dict[str, Any]:
        if not CHANNEL.fullmatch(channel):
            raise Rejected(
                f"{channel!r} is no channel's id: a message posted to a name could not be looked up afterwards"
            )
        return chat.post(channel, text, key)

    @post_message.lookup
    def find_message(*, channel: str, key: str, claimed_at: datetime, **_arguments: object) -> dict[str, Any] | None:
        try:
            return chat.found(channel, key, claimed_at - AHEAD)
        except (Declined, Rejected) as refused:
            # Never `Rejected`: a question that was refused says nothing about the message.
            raise Unreachable(str(refused)) from refused

    return post_message


class _Chat:
    """One workspace."""

    def __init__(self, base_url: str, api_key: str, timeout_s: float) -> None:
        self._base_url = base_url
        self._headers = {"Authorization": f"Bearer {api_key}".strip()}
        self._timeout_s = timeout_s

    def post(self, channel: str, text: str, key: str) -> dict[str, Any]:
        """Post the message of *key*."""
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"key": key}}
        posted = self._call("POST", "chat.postMessage", {"channel": channel, "text": text, "metadata": metadata})
        return _outcome(channel, posted)

    def found(self, channel: str, key: str, since: datetime) -> dict[str, Any] | None:
        """Return the message of *key* posted after *since*, the first posted if there are several, or `None`."""
        asked = {"channel": channel, "oldest": f"{since.timestamp():.6f}", "inclusive": "true", "limit": str(PAGE)}
        cursor, seen, ours = "", set[str](), None
        while True:
            query = asked | {"include_all_metadata": "true"} | ({"cursor": cursor} if cursor else {})
            page = self._call("GET", f"conversations.history?{urlencode(query)}")
            messages, following = _page(page)
            # Newest first: of several the last one met was the first posted.
            ours = next((message for message in reversed(messages) if _key(message) == key), ours)
            if not following:
                return _outcome(channel, ours) if ours is not None else None
            if following in seen:
                raise Unreachable("the chat answered a page that is followed by itself")
            seen.add(following)
            cursor = following

    def _call(self, method: str, name: str, body: object = None) -> dict[str, Any]:
        url = f"{self._base_url}/api/{name}"
        answer = call(method, url, body=body, headers=self._headers, timeout_s=self._timeout_s)
        if not isinstance(answer.body, dict) or answer.body.get("ok") is not True:
            raise _meaning(answer)(_said(answer))
        return answer.body


def _page(page: dict[str, Any]) -> tuple[list[Any], str]:
    """Return the messages of a page of history, and the cursor of the next, empty on the last."""
    messages, more = page.get("messages"), page.get("response_metadata")
    if not isinstance(messages, list):
        raise Unreachable("the chat answered something that is no history")
    following = str(more.get("next_cursor") or "") if isinstance(more, dict) else ""
    if page.get("has_more") and not following:  # not the end: ours may be there
        raise Unreachable("the chat has more messages, and does not say how to ask for them")
    return messages, following


def _key(message: Any) -> str | None:
    """Return the key that a message carries, `None` where it is somebody else's."""
    metadata = message.get("metadata") if isinstance(message, dict) else None
    if not isinstance(metadata, dict) or metadata.get("event_type") != EVENT_TYPE:
        return None
    payload = metadata.get("event_payload")
    return payload.get("key") if isinstance(payload, dict) else None


def _outcome(channel: str, message: dict[str, Any]) -> dict[str, Any]:
    ts = message.get("ts")
    if not isinstance(ts, str) or not ts:
        raise Unreachable("the chat answered a message without a ts")
    return {"channel": channel, "ts": ts}


def _meaning(answer: Answer) -> type[ToolError]:
    code = answer.text("error")
    if code in DECLINING:
        return Declined
    return Rejected if code in REFUSING else Unreachable


def _said(answer: Answer) -> str:
    return f"the chat answered {answer.status}: {answer.text('error') or 'nothing that says whether it was done'}"
