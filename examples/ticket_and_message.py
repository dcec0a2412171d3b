"""
Services without keys: a ticket that is opened once and a chat message that is posted once, although an answer is lost.

    uv run python examples/ticket_and_message.py

The sandbox stands in for Zendesk and Slack; against the real ones only the URLs and the API keys differ.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tools.chat import chat_effect
from tools.receivers import SLACK
from tools.sandbox import SandboxProcess
from tools.tickets import CHECKED, ticket_effect

AT_ONCE = timedelta(seconds=0)
"""The sandbox shows a ticket as soon as it has it; the real services get a minute (`tools.receivers`)."""


class State(DurableState):
    """What the two errands leave behind."""

    claim_id: str
    ticket: dict[str, Any]
    message: dict[str, Any]


def ask(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ticket's arguments."""
    return {"subject": f"Claim {state['claim_id']}: photo is missing", "text": "Please send the photo of the front."}


def tell(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message's arguments."""
    return {"channel": "C0CLAIMS01", "text": f"Ticket {state['ticket']['id']} is open"}


def errands(journal: Journal, url: str) -> DurableGraph:
    """Open a ticket, then tell the adjusters."""
    desk = ticket_effect(api_key="zd_sandbox", base_url=url, receiver=replace(CHECKED, settle_delay=AT_ONCE))
    chat = chat_effect(api_key="xoxb-sandbox", base_url=url, receiver=replace(SLACK, settle_delay=AT_ONCE))
    builder = StateGraph(State)
    builder.add_node("ticket", effect_node(desk, journal, arguments=ask, into="ticket"))
    builder.add_node("message", effect_node(chat, journal, arguments=tell, into="message"))
    builder.add_edge(START, "ticket")
    builder.add_edge("ticket", "message")
    return durable(builder, journal)


def main(url: str = "sqlite:///errands.db") -> None:
    """Run both errands while the services lose their answers; run it again, and nothing more is opened or posted."""
    with SandboxProcess(Path("errands-sandbox.db")) as sandbox, open_journal(url) as journal:
        for service in ("tickets", "chat"):
            sandbox.control.fault(service, "drop_after")
        done = errands(journal, sandbox.url).invoke({"claim_id": "0042"}, thread("errands-0042"))
        print(f"done: ticket {done['ticket']['id']}, message {done['message']['ts']}")
        for ticket in sandbox.control.tickets():
            print(f"the desk has: {ticket['subject']}")
        for message in sandbox.control.chat():
            print(f"the chat has: {message['text']}")


if __name__ == "__main__":
    main()
