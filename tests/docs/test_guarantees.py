"""The documents promise only what a test keeps: whatever they name exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GUARANTEES = [f"G{number}" for number in range(1, 11)]
LANGGRAPH = ROOT / "docs" / "langgraph.md"
NONE_YET = {"G8"}
"""Guarantees of which the README names no test, because nothing of them is there."""

TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FILE = re.compile(r"`([\w./-]+(?:\.py|\.md|\.sql|/))`")
LINK = re.compile(r"\]\(([^)#]+)\)")


@pytest.fixture(params=DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def document(request: pytest.FixtureRequest) -> Path:
    """Each document in turn."""
    found: Path = request.param
    return found


@cache
def functions_in(path: str) -> set[str]:
    """The names of the functions in a file, read and not imported."""
    tree = ast.parse((ROOT / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def prose(document: Path) -> str:
    """The text without its code."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "", text)


def test_every_named_test_exists(document: Path) -> None:
    named = TEST.findall(document.read_text())

    missing = [f"{path}::{name}" for path, name in named if not (ROOT / path).is_file() or name not in functions_in(path)]  # fmt: skip
    assert missing == []


def test_every_named_file_exists(document: Path) -> None:
    missing = [
        name
        for name in FILE.findall(document.read_text())
        if not any((place / name).exists() for place in (ROOT, document.parent, ROOT / "tests"))
    ]
    assert missing == []


def test_every_link_within_leads_somewhere(document: Path) -> None:
    targets = [link for link in LINK.findall(document.read_text()) if "://" not in link]

    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_prose_is_plain(document: Path) -> None:
    assert "!" not in prose(document).replace("![", "[")  # which shows a picture


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_readme_names_a_test_for_each_guarantee_or_says_that_nothing_keeps_it(
    guarantee: str,
) -> None:
    [row] = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(f"| {guarantee} |")]

    assert bool(TEST.search(row)) != (guarantee in NONE_YET)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_page_says_promise_means_tests_and_what_is_missing(guarantee: str) -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text()
    [section] = re.findall(rf"^## {guarantee}: .*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)

    for part in ("*Promise.*", "*How.*", "*Tests.*", "*Not kept yet.*"):
        assert part in section
    assert TEST.search(section)


def test_every_fact_about_langgraph_is_pinned_and_kept() -> None:
    """Each row of the page names a pin and a test of ours."""
    rows = [line.split(" | ") for line in LANGGRAPH.read_text().splitlines() if line.startswith("| `")]
    lacking = [row[0] for row in rows if len(row) != 4 or not TEST.search(row[2]) or not TEST.search(row[3])]

    assert len(rows) == len({row[0] for row in rows})
    assert rows
    assert lacking == []


def test_every_test_of_a_fact_stands_on_the_page() -> None:
    named = {name for _, name in TEST.findall(LANGGRAPH.read_text())}
    files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "conformance").glob("test_facts_*.py"))]
    tests = {name for path in files for name in functions_in(path) if name.startswith("test_")}

    assert {name for name in tests if not name.startswith(("test_langgraph_", "test_ours_"))} == set()
    assert tests - named == set()


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]

    assert numbers == list(range(1, len(numbers) + 1))
