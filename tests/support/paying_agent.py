"""
An agent that pays under review, run in a process that may be told where to die.

What ran stands in a folder: `asked`, one line a question to the model, and `bank`, one line a call.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable, thread
from nodes import EffectTools
from tests.support.bank import Bank
from tests.support.points import die_after, die_at
from tests.support.scripted import ScriptedModel, calls

THREAD = "chat-1"
LEASE = timedelta(milliseconds=400)
HELLO = {"messages": [{"role": "user", "content": "pay claim 1"}]}


class State(DurableState, MessagesState):
    """The state of a graph around the agent."""


def paying_agent(journal: Journal, folder: Path, mode: Any) -> DurableGraph:
    """
    Ask a model, ask a person about the payment it wants, pay, ask the model again.

    *mode* is the review's, or `inside`: per call, as a node of a graph, or `several`: batched, about two payments.
    """
    wanted = [("c1", "pay", {"claim_id": "1", "amount": 5}), ("c2", "pay", {"claim_id": "2", "amount": 5})]
    made = calls(*wanted[: 2 if mode == "several" else 1])
    model = ScriptedModel(script=[made], file=folder / "asked")
    asks: Any = {"inside": "per_call", "several": "batched"}.get(mode, mode)
    review: Any = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=asks)
    middleware = [review, EffectTools(journal, [Bank(folder / "bank").effect()])]
    agent = create_agent(model, middleware=middleware)
    if mode != "inside":
        return durable(agent, journal, attempts=9)
    builder = StateGraph(State)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    return durable(builder, journal, attempts=9)


def act(graph: DurableGraph, action: str) -> None:
    """Do one thing to the conversation, as one process would."""
    match action:
        case "submit":
            graph.invoke(HELLO, thread(THREAD))
        case "approve":
            [row] = graph.journal.approvals.pending(thread_id=THREAD)
            yes: Any = {"type": "approve"}
            requests = row.payload.get("action_requests", ())
            value = {"decisions": [yes]} if requests else yes
            if len(requests) > 1:
                value = {"decisions": {"c2": {"type": "reject"}, "c1": yes}}
            graph.invoke(Command(resume={row.interrupt_id: value}), thread(THREAD, principal="adjuster-17"))
        case "resume":
            graph.invoke(None, thread(THREAD))
        case _:
            raise ValueError(action)


def one_process(url: str, folder: Path, mode: str, action: str, point: str | None = None, nth: int = 1) -> None:
    """Open the journal, do one *action*, and die at *point* if one is given."""
    with open_journal(url, lease=LEASE) as journal:
        graph = paying_agent(journal, folder, mode)
        if point == "executed":
            die_after(Bank, "execute")
        elif point:
            die_at(point, nth=nth)
        act(graph, action)
