"""
Submitting a claim file: everything is checked before anything is stored, and submitting again after a crash completes it.

    read the file ── is there a run? ── file the claim ── store the documents ── admit the run, and advance it
                          │                  │                    │                   │
    a crash after it:     nothing            the claim is filed   and documents       an admitted run: the same again carries it on
                                             for this thread,     nobody refers to
                                             and for no other

The claim is filed before its documents are stored, because only the claims system can tell that another thread has it already.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from checkpointing import Journal, Run
from checkpointing.artefacts import Artefact
from checkpointing.digest import sha256
from checkpointing.errors import InputChanged, Refused, Rejected, UnknownThread, Unreachable
from service.wiring import App
from tools.claim_file import ClaimFile, load_claim_file
from tools.claim_models import ClaimFileInvalid, Document
from tools.claims_system import ClaimFiledOtherwise


class AlreadySubmitted(Refused):
    """
    The thread has this very claim already, and its run rests, or the file says something else of it than before.

    Attributes:
        differs: The file says something else of it than before.
    """

    def __init__(self, message: str, *, differs: bool) -> None:
        """Say which of the two it is."""
        super().__init__(message)
        self.differs = differs


class ClaimTaken(Refused):
    """The claims system has the claim for another thread, or with other content."""


class DocumentNotStored(Refused, OSError):
    """The folder for documents cannot be written."""


class ClaimNotTaken(Refused, ValueError):
    """The claims system does not take the claim as it is."""


@dataclass(frozen=True, slots=True)
class Submission:
    """
    A claim file, read whole and checked.

    Attributes:
        documents: Each document with its content and the reference the state will hold.
    """

    file: ClaimFile
    documents: tuple[tuple[Artefact, bytes], ...]

    @property
    def input(self) -> dict[str, Any]:
        """The claims graph's input."""
        return {
            "claim_id": self.file.claim.id,
            "documents": [reference.as_json() for reference, _ in self.documents],
        }


def read_submission(path: Path) -> Submission:
    """
    Read a claim file and its documents; nothing is stored.

    Raises:
        ClaimFileInvalid: the file or one of its documents cannot be used; the message says which and why.
    """
    file = load_claim_file(path)
    return Submission(file, tuple(_read(path, *document) for document in file.documents))


def is_unfinished(app: App, submission: Submission, thread_id: str) -> bool:
    """
    Tell whether the thread has a run of this very claim that somebody began and nobody ended; `False` if it has none.

    Raises:
        AlreadySubmitted: the run is parked, done or a dead letter, or the file's content is not what was filed. Nothing was changed.
        InputChanged: the run is of another claim, or of other documents. Nothing was changed.
    """
    try:
        run = app.journal.runs.get(thread_id)
    except UnknownThread:
        return False
    if run.input_digest != sha256(submission.input, what="input"):
        raise _other_input(app.journal, run, submission.file.claim.id)
    differs = _is_filed_otherwise(app, submission.file, thread_id)
    if run.state not in ("admitted", "running") or differs:
        raise _already(run, submission.file.claim.id, differs=differs)
    return True


def accept(app: App, submission: Submission, thread_id: str) -> None:
    """
    File the claim for the thread and store its documents; the thread has no run yet (`is_unfinished` has looked).

    Raises:
        ClaimTaken: another thread has the claim. Nothing was changed.
        ClaimNotTaken: the claims system refuses it. Nothing was changed.
        Unreachable: the claims system did not answer. Submit again.
        DocumentNotStored: the folder for documents cannot be written. Mend that and submit again.
    """
    _file(app, submission.file, thread_id)
    for reference, content in submission.documents:
        _store(app.journal, reference, content)


def _read(path: Path, document: Document, place: Path) -> tuple[Artefact, bytes]:
    try:
        content = place.read_bytes()
    except OSError as error:
        raise ClaimFileInvalid(f"{path}: the document {document.path!r} cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(content).hexdigest()
    return Artefact(digest, document.name, document.media_type, len(content)), content


def _store(journal: Journal, reference: Artefact, content: bytes) -> None:
    try:
        journal.artefacts.put(content, name=reference.name, media_type=reference.media_type)
    except OSError as error:
        raise DocumentNotStored(
            f"the document {reference.name!r} cannot be stored: {error}. See COUNTERFOIL_ARTEFACTS, then submit again"
        ) from error


def _already(run: Run, claim_id: str, *, differs: bool) -> AlreadySubmitted:
    other = ", and this file's content differs from what was filed then" if differs else ""
    at = quote(run.thread_id)
    further = {
        "done": "",
        "dead": f"; mend the cause, then counterfoil redrive {at} --as NAME",
    }.get(run.state, f", or carry it on with counterfoil resume {at}")
    return AlreadySubmitted(
        f"claim {claim_id} was already submitted for thread {run.thread_id!r} (state {run.state}){other}; nothing was changed. "
        f"See counterfoil show {at}{further}",
        differs=differs,
    )


def _other_input(journal: Journal, run: Run, claim_id: str) -> InputChanged:
    admitted = journal.saver.serde.loads_typed(journal.runs.input_of(run.thread_id))
    if isinstance(admitted, dict) and admitted.get("claim_id") == claim_id:
        return InputChanged(
            f"claim {claim_id} was already submitted for thread {run.thread_id!r} (state {run.state}), and this file's content differs "
            f"from what was filed then: its documents are others; nothing was changed. See counterfoil show {quote(run.thread_id)}"
        )
    return InputChanged(
        f"thread {run.thread_id!r} was admitted with other input (state {run.state}); nothing was changed. "
        "Use another thread id for another job"
    )


def _is_filed_otherwise(app: App, file: ClaimFile, thread_id: str) -> bool:
    """Ask the claims system whether it has other content for the thread's claim; `False` where it does not know, or does not answer."""
    try:
        app.outside.claims.claim(file.claim.id)  # filing what is not known there would be a change
        app.outside.claims.file(file.claim, file.policy, reference=thread_id)
    except ClaimFiledOtherwise as taken:
        return taken.reference == thread_id
    except (Rejected, Unreachable):
        return False
    return False


def _file(app: App, file: ClaimFile, thread_id: str) -> None:
    try:
        app.outside.claims.file(file.claim, file.policy, reference=thread_id)
    except ClaimFiledOtherwise as taken:
        raise ClaimTaken(_taken(app.journal, taken, file.claim.id, thread_id)) from taken
    except Rejected as refused:
        raise ClaimNotTaken(f"{refused}; nothing was changed") from refused


def _taken(journal: Journal, taken: ClaimFiledOtherwise, claim_id: str, thread_id: str) -> str:
    other = taken.reference
    if not other or other == thread_id:
        return (
            f"{taken}: this file's content differs from what was filed; nothing was changed. "
            "A claim that was filed changes at the claims system, not by another file"
        )
    if _has_run(journal, other):
        return f"claim {claim_id} was submitted for thread {other!r}; nothing was changed. See counterfoil show {quote(other)}"
    return (
        f"claim {claim_id} is filed for thread {other!r} (sandbox --load does that); nothing was changed. "
        f"Submit it with --thread {quote(other)}"
    )


def _has_run(journal: Journal, thread_id: str) -> bool:
    try:
        journal.runs.get(thread_id)
    except UnknownThread:
        return False
    return True
