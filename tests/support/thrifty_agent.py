"""An agent whose model says what it used, run in a process that may be told where to die."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from checkpointing import Journal, open_journal
from graph import Caps, DurableGraph, durable, thread
from nodes import EffectTools
from tests.support.bank import Bank
from tests.support.points import die_at
from tests.support.scripted import ScriptedModel, calls

THREAD = thread("chat-1")
LEASE = timedelta(milliseconds=400)
HELLO = {"messages": [{"role": "user", "content": "pay claim 1"}]}
PAY = ("c1", "pay", {"claim_id": "1", "amount": 60})
USES = 80
"""How many tokens every answer says it used."""


def told(message: AIMessage) -> AIMessage:
    """Return the answer with what it used."""
    usage = UsageMetadata(input_tokens=USES - 20, output_tokens=20, total_tokens=USES)
    return message.model_copy(update={"usage_metadata": usage})


def thrifty_agent(
    journal: Journal, folder: Path, caps: Caps, *, estimate: int | None = None, script: list[AIMessage] | None = None
) -> DurableGraph:
    """Ask, pay, ask, pay, ask; *estimate* is what every question is taken to use."""
    wanted = [calls(PAY), calls(("c2", "pay", {"claim_id": "2", "amount": 5}))] if script is None else script
    model = ScriptedModel(script=[told(one) for one in (*wanted, AIMessage("done"))], file=folder / "asked")
    tokens: Any = None if estimate is None else lambda _: estimate
    middleware = [EffectTools(journal, [Bank(folder / "bank").effect()], tokens=tokens)]
    return durable(create_agent(model, middleware=middleware), journal, caps=caps)


def answers(folder: Path) -> int:
    """Return how often the model was asked, by anybody."""
    return ScriptedModel(script=[], file=folder / "asked").asked


def advance(url: str, folder: Path, caps: Caps, point: str) -> None:
    """Be a process: ask, and die at *point*."""
    with open_journal(url, lease=LEASE) as journal:
        die_at(point)
        thrifty_agent(journal, folder, caps, estimate=100).invoke(HELLO, THREAD)
