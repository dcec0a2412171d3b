"""
Print which files are imported under the names given: by this process, and by one started as the tests start theirs.
"""

from __future__ import annotations

import importlib
import sys

from tests.support.processes import finish, start


def show(names: list[str]) -> None:
    """Print each module's file."""
    for name in names:
        print(importlib.import_module(name).__file__, flush=True)  # noqa: T201  # this is its output


if __name__ == "__main__":
    show(sys.argv[1:])
    # By the module's name: what is started does not know this process's `__main__` (`tests/support/processes.py`).
    finish(start(importlib.import_module("tests.mutations.where_from").show, sys.argv[1:]))
