"""
The mutations still fit the code, and two of them are run whole; `just mutations` runs all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.workshop import PACKAGES, ROOT, Mutation, Workshop

RUN_WHOLE = ("the fence in every write", "settled before it is returned")


@pytest.fixture(params=MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def mutation(request: pytest.FixtureRequest) -> Mutation:
    """Each mutation in turn."""
    found: Mutation = request.param
    return found


def test_the_text_that_is_taken_away_is_there_once(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text().count(mutation.old) == 1
    assert mutation.old != mutation.new


def test_every_mutation_has_a_name_of_its_own() -> None:
    names = [mutation.name for mutation in MUTATIONS]

    assert sorted(set(names)) == sorted(names)
    assert set(RUN_WHOLE) <= set(names)


@pytest.fixture(scope="module")
def workshop(postgres_server: str) -> Iterator[Workshop]:
    """One copy for all."""
    with TemporaryDirectory(prefix="counterfoil-") as folder:
        yield Workshop(Path(folder), postgres_server)


def test_the_tests_that_go_red_exist(workshop: Workshop) -> None:
    named = {test for mutation in MUTATIONS for test in mutation.run()}
    code, printed = workshop.python("-m", "pytest", "--collect-only", "-q", *named)

    assert code == 0, printed[-1000:]
    assert [mutation.name for mutation in MUTATIONS if not mutation.tests] == []


def test_the_copy_is_what_is_tested(workshop: Workshop) -> None:
    """In pytest's process and in those the tests start: else every mutation would go green for the wrong reason."""
    files = workshop.where_from()

    assert len(files) == 2 * len(PACKAGES)
    assert [file for file in files if not file.startswith(f"{workshop.folder}/")] == []


def test_the_suite_goes_red_without(workshop: Workshop) -> None:
    """Two of the mutations whole, so that the machinery is known to work."""
    chosen = [mutation for mutation in MUTATIONS if mutation.name in RUN_WHOLE]
    assert workshop.test([test for mutation in chosen for test in mutation.run()]).green
    for mutation in chosen:
        with workshop.mutated(mutation):
            verdict = workshop.test(mutation.run())
        assert verdict.red, f"{mutation.name}: {verdict}"
