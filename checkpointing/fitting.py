"""
Whether a value fits a JSON Schema, with nothing fetched: a reference to elsewhere is a schema that cannot be applied, also inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable


class SchemaUnusable(ValueError):
    """The schema is none, or refers to elsewhere."""


def faults_in(schema: Mapping[str, Any], value: Any, *, formats: FormatChecker | None = None) -> list[ValidationError]:
    """
    Return everything in *value* that does not fit *schema*; *formats* are held against it too, where they are given.

    Raises:
        SchemaUnusable: nobody can tell.
    """
    try:
        return list(Draft202012Validator(schema, registry=Registry(), format_checker=formats).iter_errors(value))
    except (SchemaError, Unresolvable) as error:
        raise SchemaUnusable(str(error)) from error


def fault_in(schema: Mapping[str, Any], value: Any, *, formats: FormatChecker | None = None) -> ValidationError | None:
    """Return what says best why *value* does not fit, or `None` where it does; errors as `faults_in`."""
    found: ValidationError | None = best_match(iter(faults_in(schema, value, formats=formats)))
    return found
