"""
An effect's arguments as a model gives them: which there are, what is wrong with those that came, and as JSON.
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any, get_type_hints

from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.v1 import ValidationError as ValidationErrorV1

from tools.effect import Effect

OURS = frozenset({"key", "runtime"})
"""What the model does not give: the key, and LangGraph's runtime, which the tool node injects."""


def schema_of(effect: Effect) -> type[BaseModel]:
    """
    Return the model of the arguments, which takes no others, with the runtime that the tool node injects.

    Raises:
        TypeError: the function takes what a tool cannot have.
    """
    hints = get_type_hints(effect.function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(effect.function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or name == "runtime":
            raise TypeError(
                f"effect {effect.name!r} takes {name!r}: a tool's arguments are named, and none of them is `runtime`"
            )
        if name not in OURS:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (hints.get(name, Any), default)
    fields["runtime"] = (Annotated[Any, InjectedToolArg], Field(default=None))
    return create_model(effect.name, __config__=ConfigDict(extra="forbid"), **fields)


def what_is_wrong(error: ValidationError | ValidationErrorV1) -> str:
    """Say to the model what is wrong with its arguments."""
    faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    return f"Not executed: the arguments are wrong. {'; '.join(faults)}"


def as_json(value: Any) -> Any:
    """Return a validated argument as JSON, as far as it is a model or a collection of them."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    return value
