"""
Graphs of the user's own, named on the command line as `package.module:function`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from checkpointing import Journal
from checkpointing.errors import InputRefused
from graph import DurableGraph

MakeGraph = Callable[[Journal], DurableGraph]


def load_graph(name: str) -> MakeGraph:
    """
    Return the function that makes a graph of the user's over an open journal.

    The working directory is looked in too, as `python -m` does.

    Raises:
        InputRefused: there is no such module or function, or it takes something else than the journal.
    """
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise InputRefused(f"a graph is named package.module:function, and {name!r} is not")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name and (module_name == missing.name or module_name.startswith(f"{missing.name}.")):
            raise InputRefused(
                f"there is no module {module_name!r} for --graph {name}; it is looked for in {here}, too"
            ) from missing
        raise
    made = getattr(module, function_name, None)
    if not callable(made):
        raise InputRefused(
            f"module {module_name!r} has no function {function_name!r}: one that takes the journal and returns what durable() made"
        )
    try:
        inspect.signature(made).bind(None)
    except (TypeError, ValueError) as other:
        raise InputRefused(
            f"{name} does not take the open journal as its one argument: def {function_name}(journal): ..."
        ) from other
    return _checked(made, name)


def _checked(make: Callable[[Journal], object], name: str) -> MakeGraph:
    def made(journal: Journal) -> DurableGraph:
        graph = make(journal)
        if not isinstance(graph, DurableGraph):
            raise InputRefused(f"{name} returned {type(graph).__name__}, and a worker takes what durable() made")
        return graph

    return made
