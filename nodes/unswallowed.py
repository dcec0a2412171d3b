"""
Errors that no handler between a tool and the run may turn into a message for the model.

A tool node and the middlewares around it catch a tool's errors and tell the model that it failed. An effect in doubt, a lost lease, an error that
says nothing of whether the receiver executed the call: none of them is the model's to hear. LangGraph and LangChain let a `GraphBubbleUp` pass
wherever they catch anything (an interrupt is one), retries too, so these errors are raised as what they are and as that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.errors import GraphBubbleUp


@contextmanager
def unswallowed() -> Iterator[None]:
    """Let every error pass on up as itself and as a `GraphBubbleUp`."""
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001  # raised again at once, as what nobody catches
        raise _bubbling(error).with_traceback(error.__traceback__) from error.__cause__


def _bubbling(error: Exception) -> Exception:
    kind = _kind(type(error))
    made = kind.__new__(kind, *error.args)
    made.args = error.args
    made.__dict__.update(error.__dict__)
    return made


def _kind(kind: type[Exception]) -> type[Exception]:
    """Return the class that is both, under the name that people and the run's row know it by."""
    # In this order: `Exception` itself may be the kind, and cannot stand before a class made of it.
    return type(kind.__name__, (GraphBubbleUp, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
