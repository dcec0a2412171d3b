"""Artefacts: bytes under their own digest, whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpointing.artefacts import Artefacts
from checkpointing.errors import UnknownArtefact


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    artefacts = Artefacts(str(tmp_path / "store"))
    reference = artefacts.put(b"an estimate", name="estimate.txt", media_type="text/plain")
    again = artefacts.put(b"an estimate", name="copy.txt", media_type="text/plain")

    assert (reference.size_bytes, reference.sha256) == (11, again.sha256)
    assert artefacts.get(reference.sha256) == b"an estimate"
    assert len([path for path in (tmp_path / "store").rglob("*") if path.is_file()]) == 1


def test_a_changed_file_is_not_handed_out(tmp_path: Path) -> None:
    artefacts = Artefacts(str(tmp_path))
    reference = artefacts.put(b"an estimate", name="estimate.txt", media_type="text/plain")
    next(path for path in tmp_path.rglob("*") if path.is_file()).write_bytes(b"another one")

    with pytest.raises(UnknownArtefact, match="was changed"):
        artefacts.get(reference.sha256)


@pytest.mark.parametrize("sha256", ["", "0" * 64, "../../../etc/passwd", "Z" * 64])
def test_what_is_not_there(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(UnknownArtefact):
        Artefacts(str(tmp_path)).get(sha256)


def test_any_file_system_will_do() -> None:
    artefacts = Artefacts("memory://documents")
    reference = artefacts.put(b"a photograph", name="photo.png", media_type="image/png")

    assert artefacts.get(reference.sha256) == b"a photograph"
