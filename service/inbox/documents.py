"""
The documents beside an approval, as they may be shown: whatever a claimant handed in is never run, and never kept by a browser for a page.

What an approval names is served with it, and nothing else of the store: whoever may see the approval may see its documents. Pictures and plain text are
shown; anything else is only to be saved. Every answer is sandboxed by its own policy, so that a picture that is a program in truth does nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from checkpointing import Approval
from checkpointing.artefacts import Artefacts
from checkpointing.errors import UnknownArtefact

DIGEST = re.compile("[0-9a-f]{64}")
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
TEXTS = ("text/plain", "text/csv")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
"""A picture may have colours of its own in it (`style`), and that is all; no script, no form, no origin."""
LONGEST_TEXT = 20_000
"""How much of a text is shown in the page, in bytes."""


@dataclass(frozen=True, slots=True)
class Document:
    """
    A document as the page shows it.

    Attributes:
        kind: `picture`, `text`, or `file` for what is only to be saved.
        size: In words.
        text: What a text says, the beginning of a long one; empty for others and where the store has it not.
        missing: The store has it not, or has something else under its digest.
    """

    sha256: str
    name: str
    media_type: str
    kind: str
    size: str
    text: str = ""
    is_cut: bool = False
    missing: bool = False


def documents(approval: Approval, artefacts: Artefacts) -> list[Document]:
    """Return the documents that the approval names, in its order; what is no reference is left out."""
    return [_document(one, artefacts) for one in _references(approval)]


def served(approval: Approval, sha256: str, artefacts: Artefacts) -> Response:
    """
    Return one of the approval's documents.

    Raises:
        UnknownArtefact: the approval names no such document, or the store has it not.
    """
    named = next((one for one in _references(approval) if one["sha256"] == sha256), None)
    if named is None:
        raise UnknownArtefact(f"approval {approval.id!r} names no document {sha256!r}")
    content = artefacts.get(sha256)
    media_type = str(named.get("media_type", ""))
    shown = media_type in PICTURES or media_type in TEXTS
    kind = "inline" if shown else "attachment"
    return Response(
        content,
        headers={
            "Content-Type": _content_type(media_type),
            "Content-Disposition": f"{kind}; filename*=UTF-8''{quote(_name(named), safe='')}",
            "Content-Security-Policy": POLICY,
        },
    )


def _references(approval: Approval) -> list[dict[str, Any]]:
    given = (approval.about or {}).get("documents")
    if not isinstance(given, list):
        return []
    return [one for one in given if isinstance(one, dict) and DIGEST.fullmatch(str(one.get("sha256", ""))) is not None]


def _document(reference: dict[str, Any], artefacts: Artefacts) -> Document:
    media_type, sha256 = str(reference.get("media_type", "")), str(reference["sha256"])
    kind = "picture" if media_type in PICTURES else "text" if media_type in TEXTS else "file"
    made = Document(sha256, _name(reference), media_type, kind, _size(reference.get("size_bytes")))
    if kind != "text":
        return made
    try:
        content = artefacts.get(sha256)
    except (UnknownArtefact, OSError):
        return Document(sha256, made.name, media_type, kind, made.size, missing=True)
    said = content[:LONGEST_TEXT].decode("utf-8", "replace")
    return Document(sha256, made.name, media_type, kind, made.size, said, is_cut=len(content) > LONGEST_TEXT)


def _content_type(media_type: str) -> str:
    if media_type in PICTURES:
        return media_type
    # Whatever calls itself text is sent as plain text: a browser that reads it as anything else has no leave to.
    return "text/plain; charset=utf-8" if media_type in TEXTS else "application/octet-stream"


def _name(reference: dict[str, Any]) -> str:
    return str(reference.get("name") or "document")[:200]


def _size(size_bytes: object) -> str:
    if not isinstance(size_bytes, int) or isinstance(size_bytes, bool) or size_bytes < 0:
        return ""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1024:.0f} kB" if size_bytes < 1024**2 else f"{size_bytes / 1024**2:.1f} MB"
