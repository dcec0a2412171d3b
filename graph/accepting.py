"""
Accepting what a call brings: the input or the decisions are made durable before anything runs, unless this graph cannot carry the run on.

A crash before the commit leaves nothing; after it an admitted run, or a decided approval and a run that is ready, which anybody may advance.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from checkpointing import Journal, Run
from checkpointing.admissions import Admission
from checkpointing.digest import sha256
from checkpointing.errors import ArgumentsNotJson, CounterfoilError, GraphChanged, InputRefused
from checkpointing.principals import Person
from graph.asks import Ask, Decide, Nudge, Start
from graph.questions import decide
from graph.snapshots import check_nodes_exist, check_turn
from nodes.state import CHANNELS

Compiled = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Accepting:
    """
    What one graph takes.

    Attributes:
        name: What the graph is called, or nothing; a run belongs to the graph of one name.
        turns: A thread that is done takes further input.
    """

    compiled: Compiled
    journal: Journal
    name: str
    turns: bool

    def accept(
        self,
        ask: Ask,
        config: RunnableConfig,
        thread_id: str,
        principal: Person | None,
        submission: str,
        *,
        queued: bool = False,
    ) -> bool:
        """Make what was asked durable, the admission or the decisions; `False` if it was an older submission, repeated late."""
        if isinstance(ask, Nudge):
            self._check_nudge(thread_id, config)
        elif isinstance(ask, Decide) or self.journal.runs.find(thread_id):
            self.check_carries(thread_id, config)
        if isinstance(ask, Start):
            self._check_input(ask.input)
            name = principal.name if principal else None
            run = self.journal.runs.admit(self._admission(ask.input, thread_id, name, submission), queued=queued)
            return not (self.turns and submission and submission != run.submission)
        if isinstance(ask, Decide):
            decide(self.journal, ask, self.compiled, config, thread_id=thread_id, principal=principal)
        return True

    def _check_nudge(self, thread_id: str, config: RunnableConfig) -> None:
        """As `check_carries`, but for what cannot even be read: that is met again at the start, which books it as an attempt."""
        try:
            self.check_carries(thread_id, config)
        except CounterfoilError:
            raise
        except Exception:
            if self.journal.runs.get(thread_id).state not in ("admitted", "running"):
                raise

    def _check_input(self, given: dict[str, Any]) -> None:
        """Refuse what the graph would drop without a word: a key that its input has not."""
        takes = self.compiled.builder.schemas[self.compiled.builder.input_schema].keys()
        if unknown := sorted(given.keys() - takes):
            raise InputRefused(
                f"the graph's input has no {', '.join(map(repr, unknown))}; it has {', '.join(map(repr, sorted(takes - CHANNELS)))}"
            )

    def check_carries(self, thread_id: str, config: RunnableConfig) -> Run:
        """
        Return the thread's run if this graph can carry it on.

        Raises:
            GraphChanged: it is another graph's, it stands at a node that is gone, or somebody wrote another turn into it.
        """
        run = self.journal.runs.get(thread_id)
        if run.graph != self.name:
            raise GraphChanged(
                f"thread {thread_id!r} belongs to {_called(run.graph)}, and this is {_called(self.name)}; the run is untouched"
            )
        if run.state != "done":  # a join that filled in part is then nothing that is still to run
            check_nodes_exist(self.compiled, config)
        head = self.journal.saver.get_tuple(config)
        check_turn(head, thread_id, turn=run.turn, started=run.head is not None)
        return run

    def _admission(self, given: dict[str, Any], thread_id: str, principal: str | None, submission: str) -> Admission:
        kind, content = self.journal.saver.serde.dumps_typed(given)
        try:
            digest = sha256(given, what="input")
        except ArgumentsNotJson:  # messages, say: LangGraph's own serialisation of them is all there is
            digest = hashlib.sha256(content).hexdigest()
        return Admission(thread_id, kind, content, digest, submission, principal, self.name, self.turns)


def _called(name: str) -> str:
    return f"graph {name!r}" if name else "a graph without a name"
