"""
Whether an answer fits the schema that an interrupt publishes.

LangGraph checks an answer against the Python type behind the schema, at every resume. What it refuses after it was recorded would be refused at every
advance, so the formats of text that such a type stands for (`date`, `uuid`, ...) are read as it reads them, which JSON Schema alone leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

from jsonschema import FormatChecker
from pydantic import AnyUrl, TypeAdapter, ValidationError

from checkpointing.errors import DecisionInvalid
from checkpointing.fitting import SchemaUnusable, fault_in

READERS: Mapping[str, TypeAdapter[Any]] = {
    "date-time": TypeAdapter(datetime),
    "date": TypeAdapter(date),
    "time": TypeAdapter(time),
    "duration": TypeAdapter(timedelta),
    "uuid": TypeAdapter(UUID),
    "uri": TypeAdapter(AnyUrl),
    "ipv4": TypeAdapter(IPv4Address),
    "ipv6": TypeAdapter(IPv6Address),
}


def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, reader in READERS.items():

        def reads(value: object, reader: TypeAdapter[Any] = reader) -> bool:
            return not isinstance(value, str) or reader.validate_python(value) is not None

        checker.checks(name, raises=ValidationError)(reads)
    return checker


FORMATS = _formats()


def check_fits(schema: dict[str, Any], value: Any, what: str) -> None:
    """
    Refuse a value that does not fit *schema*.

    Raises:
        DecisionInvalid: it does not, or the schema is none that can be applied.
    """
    try:
        fault = fault_in(schema, value, formats=FORMATS)
    except SchemaUnusable as error:
        raise DecisionInvalid(f"{what} cannot be checked: {error}") from error
    if fault is not None:
        raise DecisionInvalid(f"{what} does not fit at {fault.json_path}: {fault.message}")
