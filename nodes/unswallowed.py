"""
Errors that no handler between a tool and the run may turn into a message for the model.

A tool node and the middlewares around it catch a tool's errors and tell the model that it failed. An effect in doubt, a lost lease, an error that
says nothing of whether the receiver executed the call: none of them is the model's to hear. LangGraph and LangChain let a `GraphBubbleUp` pass
wherever they catch anything (an interrupt is one), retries too, so these errors are raised as what they are and as that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1


@contextmanager
def unswallowed() -> Iterator[None]:
    """Let every error pass on up as itself and as a `GraphBubbleUp`."""
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # raised again at once, as what nobody catches
        raise _bubbling(error).with_traceback(error.__traceback__) from error


def _bubbling(error: Exception) -> Exception:
    """Return *error* as both; where its class cannot be made in that way, as a bubble of its name that says the same."""
    kind = type(error)
    if not isinstance(
        error, ValidationError | ValidationErrorV1
    ):  # a tool catches these by their class, whatever else they are
        with suppress(Exception):  # a class that is built in its own way
            both = _kind(kind)
            made = both.__new__(both, *error.args)
            made.args = error.args
            made.__dict__.update(error.__dict__)
            if str(made) == str(error):
                return made
    bubble: type[Exception] = type(kind.__name__, (GraphBubbleUp,), {"__module__": kind.__module__})
    return bubble(str(error))


def _kind(kind: type[Exception]) -> type[Exception]:
    """Return the class that is both, under the name that people and the run's row know it by."""
    # In this order: `Exception` itself may be the kind, and cannot stand before a class made of it.
    return type(kind.__name__, (GraphBubbleUp, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
