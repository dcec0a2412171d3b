"""
Artefacts: bytes kept under their own SHA-256 in a folder, so that the state holds a reference and never a document.

The folder is anything fsspec opens. A crash while writing leaves a file under a temporary name, which nobody refers to; the name of a
finished artefact is the proof of its content.
"""

from __future__ import annotations

import hashlib
import posixpath
import uuid
from dataclasses import asdict, dataclass
from typing import Any

import fsspec

from checkpointing.errors import JournalUnusable, UnknownArtefact


@dataclass(frozen=True, slots=True)
class Artefact:
    """
    A reference to stored bytes, as the state holds it.

    Attributes:
        sha256: 64 hex digits, the artefact's only name in the store.
        name: What people call it.
    """

    sha256: str
    name: str
    media_type: str
    size_bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the reference as JSON for the state."""
        return asdict(self)


class Artefacts:
    """A folder of content-addressed files."""

    def __init__(self, url: str) -> None:
        """
        Use the folder at *url* (a path, or any URL fsspec knows); it is made at the first `put`.

        Raises:
            JournalUnusable: fsspec does not know such a URL, or lacks the package for it.
        """
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise JournalUnusable(f"cannot keep artefacts at {url.partition('://')[0]}://…: {error}") from error

    def put(self, content: bytes, *, name: str, media_type: str) -> Artefact:
        """Store *content*; storing the same bytes again changes nothing."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if not (self._files.exists(path) and self._files.size(path) == len(content)):
            self._files.makedirs(posixpath.dirname(path), exist_ok=True)
            unfinished = f"{path}.{uuid.uuid4().hex}"
            self._files.pipe_file(unfinished, content)
            self._files.mv(unfinished, path)
        return Artefact(digest, name, media_type, len(content))

    def get(self, sha256: str) -> bytes:
        """
        Return the bytes.

        Raises:
            UnknownArtefact: there are none under this digest, or the file's content is not what its name says.
        """
        try:
            content: bytes = self._files.cat_file(self._path(sha256))
        except FileNotFoundError as error:
            raise UnknownArtefact(f"there is no artefact {sha256!r} in {self._root}") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise UnknownArtefact(f"artefact {sha256!r} in {self._root} was changed: its content has another digest")
        return content

    def _path(self, sha256: str) -> str:
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise UnknownArtefact(f"{sha256!r} is not the digest of an artefact: 64 hex digits")
        return posixpath.join(self._root, sha256[:2], sha256)
