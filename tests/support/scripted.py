"""
A chat model that says what it is told to say, and counts in a file how often it was asked, so that the count survives the death of its caller.

What it says depends on the conversation alone: its n-th line answers a conversation that has n answers of it already. Like a real one it has no
memory, and gives every answer a new id.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field


def calls(*tool_calls: tuple[str, str, dict[str, Any]], id: str | None = None) -> AIMessage:  # noqa: A002  # a message's own word
    """Return an answer that calls tools, each given as its id, its name and its arguments."""
    made = [{"id": call_id, "name": name, "args": args} for call_id, name, args in tool_calls]
    return AIMessage("", tool_calls=made, id=id)


class ScriptedModel(BaseChatModel):
    """
    The model.

    Attributes:
        script: What it says, in order; then it says `done`.
        file: One line for every time it was asked: how many messages it was shown.
        seen: The last conversation it was shown.
    """

    script: list[AIMessage]
    file: Path
    seen: list[BaseMessage] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def asked(self) -> int:
        """How often it was asked, by anybody."""
        return len(self.file.read_text().splitlines()) if self.file.exists() else 0

    def bind_tools(self, tools: Sequence[Any], **_options: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_args: Any, **_options: Any) -> ChatResult:
        with self.file.open("a") as file:
            file.write(f"{len(messages)}\n")
        self.seen = list(messages)
        said = sum(isinstance(message, AIMessage) for message in messages)
        line = self.script[said] if said < len(self.script) else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=line.model_copy())])
