"""
Reading a claim file: either a whole `ClaimFile`, or one line that says which file, which field and what is wanted.

The content of a file is never repeated in a message: claim files are full of people's data. The size is looked at before
a byte is read, so a wrong file of any size costs nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tools.claim_models import Claim, ClaimFileInvalid, Document, Filing, Policy

MAX_FILE_BYTES = 1024 * 1024
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class ClaimFile:
    """
    A claim as it came in: the claim, its policy, and where its documents lie.

    Attributes:
        folder: The resolved folder of the file; each of `claim.documents` is a file in it.
    """

    claim: Claim
    policy: Policy
    folder: Path

    @property
    def documents(self) -> tuple[tuple[Document, Path], ...]:
        """Each document with the file that holds it, in the claim's order."""
        return tuple((document, self.folder / document.path) for document in self.claim.documents)


def load_claim_file(path: Path) -> ClaimFile:
    """
    Return the claim file at *path*, with every document seen to be there.

    Raises:
        ClaimFileInvalid: the file is not a claim file. The message is one line: file, field, what is wanted.
    """
    filing = _filing(path, _text(path))
    folder = path.resolve().parent
    for index, document in enumerate(filing.claim.documents):
        _check_document(path, folder, index, document)
    return ClaimFile(claim=filing.claim, policy=filing.policy, folder=folder)


def _text(path: Path) -> str:
    if path.is_dir():
        _refuse(path, "is a folder; name the claim.json in it")
    try:
        if path.exists() and not path.is_file():
            _refuse(path, "is not a regular file")
        size_bytes = path.stat().st_size
        if size_bytes > MAX_FILE_BYTES:
            _refuse(path, f"has {size_bytes} bytes; a claim file has at most {MAX_FILE_BYTES}")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(path, f"is not UTF-8 text (byte {error.start}); save it as UTF-8", error)
    except OSError as error:
        _refuse(path, f"cannot be read: {error.strerror or 'no such file'}", error)


def _filing(path: Path, text: str) -> Filing:
    _check_json(path, text)
    try:
        # From the text, not from what `json` made of it: in strict mode only JSON input may turn text into a date.
        return Filing.model_validate_json(text)
    except ValidationError as error:
        _refuse(path, _wanted(error.errors(include_url=False, include_input=False)), error)


def _check_json(path: Path, text: str) -> None:
    """Refuse what the validator would let pass or name badly: duplicate keys, NaN, endless nesting."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        _refuse(path, f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}", error)
    except RecursionError as error:
        _refuse(path, f"is nested too deeply; a claim file has at most {MAX_DEPTH} levels", error)
    except _NotAllowed as error:
        _refuse(path, str(error), error)
    except ValueError as error:
        _refuse(path, "has a number too long to read; amounts are integers of minor units", error)
    if _depth(value) > MAX_DEPTH:
        _refuse(path, f"is nested too deeply; a claim file has at most {MAX_DEPTH} levels")


def _check_document(path: Path, folder: Path, index: int, document: Document) -> None:
    field = f"claim.documents[{index}].path"
    try:
        target = (folder / document.path).resolve()
        found = target.is_file()
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, up to Python 3.12
        _refuse(path, f"{field} cannot be read; it names a file beside the claim file", error)
    if not target.is_relative_to(folder):
        _refuse(path, f"{field} leads out of the claim's folder; documents lie beside the claim file")
    if not found:
        _refuse(path, f"{field} names {document.path!r}, and there is no such file in {folder.name}")


class _NotAllowed(ValueError):
    """JSON that a reader would take, and that no claim file may have."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise _NotAllowed(f"has the key {key[:40]!r} twice in one object; each key stands once")
        seen[key] = value
    return seen


def _no_constant(name: str) -> NoReturn:
    raise _NotAllowed(f"has {name}, which is no number in JSON; amounts are integers of minor units")


def _depth(value: object) -> int:
    """Return how deep lists and objects stand in each other, without recursion."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _wanted(errors: list[ErrorDetails]) -> str:
    """Say the first error, and how many more there are."""
    first, more = errors[0], len(errors) - 1
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" for part in first["loc"]).lstrip(".")
    message = first["msg"].removeprefix("Value error, ")
    said = f"{field}: {message}" if field else message
    return f"{said} (and {more} more)" if more else said


def _shown(part: str) -> str:
    return part[:40] if part.isprintable() else repr(part[:40])


def _refuse(path: Path, why: str, cause: Exception | None = None) -> NoReturn:
    raise ClaimFileInvalid(f"{path}: {why}") from cause
