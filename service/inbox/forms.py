"""
The edit form: fields made from an approval's own payload and JSON Schema, and what was typed read back into the kinds that the payload has.

    const                   shown, not to be changed
    amount beside currency  entered as money, kept in minor units
    whole number, number    entered as a number
    true or false           chosen
    enum                    chosen
    text                    entered as text
    list, null, a mapping without a schema of its own    entered as JSON

What cannot be read is said beside its field, and nothing that was typed is lost. The ledger checks the whole payload once more.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from jsonschema.exceptions import ValidationError

from checkpointing import Approval
from checkpointing.fitting import SchemaUnusable, faults_in
from service.inbox import words

Kind = Literal["fixed", "money", "integer", "number", "boolean", "choice", "text", "json"]
OF_TYPE: Mapping[type, Kind] = {bool: "boolean", int: "integer", float: "number", str: "text"}
"""How a value is entered by what it is; anything else as JSON."""
PREFIX = "field."
GROUPED = re.compile(r"-?\d{1,3}(,\d{3})*(\.\d+)?", re.ASCII)
PLAIN = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
WHOLE = re.compile(r"-?\d{1,16}", re.ASCII)
LONG_TEXT = 80
LARGEST = 2**53 - 1
LONGEST_NUMBER = 40
"""Characters. Python reads no number of thousands of digits, and no amount has them."""


class NotReadable(ValueError):
    """What was typed cannot be read as what the field takes; the message is for whoever typed it."""


@dataclass(frozen=True, slots=True)
class Field:
    """
    One field of the form.

    Attributes:
        name: Of its input: `field.0`, by its place in the payload, whatever its key is called.
        path: Where its value stands in the payload.
        shown: The payload's own value.
        typed: What stands in the input.
        hint: What may be entered, in words.
        error: What is wrong with what was typed; empty if nothing is.
        options: What can be chosen, as text.
    """

    name: str
    path: tuple[str, ...]
    label: str
    kind: Kind
    shown: Any
    typed: str
    currency: str = ""
    hint: str = ""
    error: str = ""
    options: tuple[str, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether it takes several lines."""
        return self.kind == "json" or (self.kind == "text" and ("\n" in self.typed or len(self.typed) > LONG_TEXT))


def fields(approval: Approval) -> list[Field]:
    """Return the form's fields for the payload as it is asked; none for a payload that is no mapping."""
    if not isinstance(approval.payload, Mapping):
        return []
    found = _fields(approval.payload, approval.edits or {}, (), approval.amount_in)
    return [replace(field, name=f"{PREFIX}{place}") for place, field in enumerate(found)]


def read(approval: Approval, given: Mapping[str, str]) -> tuple[Any, list[Field]]:
    """
    Return the payload that was typed, and the fields with what was typed in them; where one has an error the payload is not to be used.

    A field that was not sent keeps the payload's own value, as one that is fixed always does.
    """
    payload: Any = json.loads(json.dumps(approval.payload))
    read_back = []
    for field in fields(approval):
        if field.kind == "fixed" or field.name not in given:
            read_back.append(field)
            continue
        typed = given[field.name]
        try:
            _put(payload, field.path, _value(field, typed))
            read_back.append(replace(field, typed=typed))
        except NotReadable as error:
            read_back.append(replace(field, typed=typed, error=str(error)))
    if not any(field.error for field in read_back):
        read_back = _checked(approval, payload, read_back)
    return payload, read_back


def _fields(payload: Mapping[str, Any], schema: Any, path: tuple[str, ...], amount_in: str | None) -> Iterator[Field]:
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    for key, shown in payload.items():
        own = known.get(key, {}) if isinstance(known, Mapping) else {}
        own = own if isinstance(own, Mapping) else {}
        here = (*path, key)
        if isinstance(shown, Mapping) and shown and "const" not in own:
            yield from _fields(shown, own, here, None)
            continue
        money = words.is_amount(key, shown, payload, amount_in if not path else None)
        currency = words.currency_of(payload) if money else ""
        kind = _kind(shown, own, money=money)
        yield Field(
            name="",
            path=here,
            label=", ".join(map(words.label, here)),
            kind=kind,
            shown=shown,
            typed=_typed(kind, shown, currency),
            currency=currency,
            hint=_hint(kind, own, currency),
            options=tuple(words.value(one) for one in own.get("enum", ())) if kind == "choice" else (),
        )


def _kind(shown: Any, schema: Mapping[str, Any], *, money: bool) -> Kind:
    if "const" in schema:
        return "fixed"
    if isinstance(schema.get("enum"), list) and all(isinstance(one, str | int | float) for one in schema["enum"]):
        return "choice"
    return "money" if money else OF_TYPE.get(type(shown), "json")


def _typed(kind: Kind, shown: Any, currency: str) -> str:
    match kind:
        case "money":
            return words.number(shown, currency).replace(",", "")
        case "boolean":
            return "true" if shown else "false"
        case "json":
            return json.dumps(shown, ensure_ascii=False, indent=1)
        case "fixed" if isinstance(shown, int) and not isinstance(shown, bool):
            return str(shown)
        case _:
            return words.value(shown)


def _hint(kind: Kind, schema: Mapping[str, Any], currency: str) -> str:
    if kind not in ("money", "integer", "number"):
        return ""

    def said(limit: Any) -> str:
        return words.money(limit, currency) if kind == "money" and isinstance(limit, int) else str(limit)

    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"Between {said(low)} and {said(high)}."
    if high is not None:
        return f"At most {said(high)}."
    return f"At least {said(low)}." if low is not None else ""


def _value(field: Field, typed: str) -> Any:
    readers: dict[Kind, Callable[[], Any]] = {
        "money": lambda: minor_units(typed, field.currency),
        "integer": lambda: _whole(typed),
        "number": lambda: _number(typed, field.shown),
        "boolean": lambda: typed == "true",
        "choice": lambda: _chosen(field, typed),
        "json": lambda: _json(typed),
        # A form's line ends are CR LF, whatever the text had.
        "text": lambda: typed.replace("\r\n", "\n"),
    }
    return readers[field.kind]()


def minor_units(typed: str, currency: str) -> int:
    """
    Return what was typed as an amount, in minor units of the currency.

    Raises:
        NotReadable: it is no amount, or one with more decimals than the currency has.
    """
    text = typed.strip().removeprefix(currency).removesuffix(currency).strip()
    example = words.number(10 ** (words.decimals(currency) + 3), currency).replace(",", "")
    if len(text) > LONGEST_NUMBER or not (PLAIN.fullmatch(text) or GROUPED.fullmatch(text)):
        raise NotReadable(f"Write the amount as a number, with a point before the decimals: {example}.")
    whole, _, rest = text.replace(",", "").partition(".")
    places = words.decimals(currency)
    if len(rest) > places:
        raise NotReadable(f"{currency or 'This amount'} has {places} decimals: {example}.")
    amount = int(whole.removeprefix("-") + rest.ljust(places, "0"))
    if amount > LARGEST:
        raise NotReadable("The amount is too large.")
    return -amount if whole.startswith("-") else amount


def _whole(typed: str) -> int:
    text = typed.strip().replace(",", "") if GROUPED.fullmatch(typed.strip()) else typed.strip()
    if not WHOLE.fullmatch(text) or abs(int(text)) > LARGEST:
        raise NotReadable("Write a whole number.")
    return int(text)


def _number(typed: str, shown: Any) -> int | float:
    try:
        found = float(typed.strip())
    except ValueError as error:
        raise NotReadable("Write a number, with a point before the decimals.") from error
    if not math.isfinite(found):
        raise NotReadable("Write a number, with a point before the decimals.")
    return shown if found == shown else found


def _chosen(field: Field, typed: str) -> Any:
    if typed not in field.options:
        raise NotReadable("Choose one of the list.")
    return _json_or_text(typed, field.shown)


def _json_or_text(typed: str, shown: Any) -> Any:
    return typed if isinstance(shown, str) else _json(typed)


def _json(typed: str) -> Any:
    try:
        return json.loads(typed)
    except (ValueError, RecursionError) as error:
        raise NotReadable("This is no JSON; what was there before is shown above the line.") from error


def _put(payload: Any, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        payload = payload[key]
    payload[path[-1]] = value


def _checked(approval: Approval, payload: Any, read_back: list[Field]) -> list[Field]:
    """Return the fields with what the approval's own schema says against their values."""
    try:
        faults = faults_in(approval.edits or {}, payload)
    except SchemaUnusable:
        return read_back  # the ledger says so
    at = {tuple(map(str, fault.absolute_path)): fault for fault in reversed(faults)}
    return [replace(one, error=_said(one, at[one.path])) if one.path in at else one for one in read_back]


def _said(field: Field, fault: ValidationError) -> str:
    if fault.validator in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") and field.hint:
        return f"Out of bounds. {field.hint}"
    return words.cut(f"{fault.message[:1].upper()}{fault.message[1:]}.", 200)
