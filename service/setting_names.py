"""
The names that settings have: one that begins like ours and is none of them is a slip of the pen, and would be ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches

from dotenv import dotenv_values

PREFIX = "COUNTERFOIL_"

OF_THE_TESTS = (
    "COUNTERFOIL_TEST_POSTGRES",
    "COUNTERFOIL_RACE_ROUNDS",
    "COUNTERFOIL_EXAMPLES",
    "COUNTERFOIL_RECONCILE_EFFECTS",
    "COUNTERFOIL_SOAK_CLAIMS",
    "COUNTERFOIL_SOAK_KILLS",
    "COUNTERFOIL_SOAK_COMMAND",
    "COUNTERFOIL_SOAK_SEED",
    "COUNTERFOIL_BACKLOG",
)
"""Read by the test suite, and allowed to stand where settings are read."""


def unknown_names(settings: Iterable[str]) -> list[str]:
    """
    Return a line for every name in the environment and in `.env` that begins with `COUNTERFOIL_` and is no setting's.

    Raises:
        UnicodeDecodeError: the file `.env` is not UTF-8 text.
    """
    known = sorted({*settings, *OF_THE_TESTS})
    places = {"the environment": tuple(os.environ), ".env": tuple(dotenv_values(".env", interpolate=False))}
    return [
        _unknown(name, place, known)
        for place, names in places.items()
        for name in names
        if name.upper().startswith(PREFIX) and name.upper() not in known
    ]


def _unknown(name: str, place: str, known: list[str]) -> str:
    nearest = get_close_matches(name.upper(), known, n=1)
    meant = f"did you mean {nearest[0]}?" if nearest else "see docs/settings.md"
    return f"there is no setting {name} (in {place}); {meant}"
