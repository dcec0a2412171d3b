"""
Nobody adds a durable write or a call to a receiver without its crash: what the source does is compared with what `points.py` kills.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import checkpointing
from tests.crash.points import CALLS, CALLS_ELSEWHERE, ELSEWHERE, EXEMPT, WRITES, calls, cases
from tests.crash.stories import STORIES
from tests.support.points import FOLDER_WRITES, READS

TEXT = re.compile(r"'((?:before|after) [\w. -]+)'")
ROOT = Path(checkpointing.__file__).parents[1]
PRODUCT = ("checkpointing", "tools", "nodes", "graph", "service")
NAMING = {"transaction", "_end", "_fenced"}
"""What takes a transaction's name: `Store.transaction`, and the two that hand it on."""
HANDING_ON = {("runs.py", "_end"), ("savers.py", "_transaction")}
FOLDER_READS = {"exists", "size", "cat_file"}
CLIENTS = {
    "chat.py",
    "claims_system.py",
    "mail.py",
    "messages.py",
    "payments.py",
    "tickets.py",
    "transfers.py",
    "webhooks.py",
}
"""The modules of `tools` that talk to a receiver; the calls of each stand in `CALLS`."""


def modules(*packages: str) -> Iterator[tuple[Path, ast.Module]]:
    """Read the source, without the sandbox, which stands in for the world outside."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "sandbox" not in path.parts:
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def called(node: ast.AST) -> str:
    """Return the last part of what a call calls; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def keyword(call: ast.AST, name: str) -> str | None:
    """Return the text given for a keyword of a call."""
    assert isinstance(call, ast.Call)
    return next((text(one.value) for one in call.keywords if one.arg == name), None)


def transactions() -> set[str]:
    """Return the name of every transaction in the source."""
    found = set()
    for path, module in modules(*PRODUCT):
        functions = [one for one in ast.walk(module) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            for node in ast.walk(function):
                if called(node) not in NAMING or not isinstance(node, ast.Call) or not node.args:
                    continue
                name = text(node.args[0])
                assert name or (path.name, function.name) in HANDING_ON, (
                    f"{path}: a transaction whose name is not written there"
                )
                if name:
                    found.add(name)
    return found


def effects() -> set[str]:
    """Return the name of every effect declared in the source, of every look-up, and of every model that is asked."""
    found = set()
    for _, module in modules("tools", "nodes", "graph", "service"):
        for node in ast.walk(module):
            for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if called(decorator) == "effect":
                    found.add(keyword(decorator, "name"))
                elif isinstance(decorator, ast.Attribute) and decorator.attr == "lookup":
                    found.add(f"{ast.unparse(decorator.value)} look-up")
            if called(node) == "model_node":
                found.add(keyword(node, "name"))
    assert None not in found, "an effect without a name written where it is declared"
    return {name for name in found if name}


def reads_of_reconciliation() -> set[str]:
    """Return every list and every retrieval declared in the source, by its effect's name."""
    return {
        ast.unparse(decorator)
        for _, module in modules("tools", "nodes", "graph", "service")
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Attribute) and decorator.attr in {"listing", "retrieval"}
    }


def claims_reads() -> set[str]:
    """Return every method of the claims system's client that calls it."""
    [module] = [module for path, module in modules("tools") if path.name == "claims_system.py"]
    return {
        function.name
        for function in ast.walk(module)
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
        for node in ast.walk(function)
        if called(node) == "_call"
    }


def clients() -> set[str]:
    """Return the modules of `tools` that import something to call a receiver with."""
    found = set()
    for path, module in modules("tools"):
        for node in ast.walk(module):
            imported = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
            by_wire = isinstance(node, ast.ImportFrom) and node.module == "tools.wire" and imported & {"call", "send"}
            if by_wire or imported & {"stripe", "httpx", "requests", "smtplib", "socket"}:
                found.add(path.name)
    return found - {"wire.py"}


def folder_calls() -> set[str]:
    """Return everything the artefacts tell their folder."""
    [module] = [module for path, module in modules("checkpointing") if path.name == "artefacts.py"]
    return {
        called(node)
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self._files.")
    }


def source_of(test: str) -> str:
    """Return a test's source with what it is parametrised by; a test that is gone is an error."""
    file, _, name = test.partition("::")
    [found] = [
        node for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body if getattr(node, "name", "") == name
    ]
    return ast.unparse(found)


def killed_on_both_sides(points: set[str], name: str) -> bool:
    return {f"before {name}", f"after {name}"} <= points


def test_every_durable_write_has_its_crash() -> None:
    folder = {f"artefact.{method}" for method in FOLDER_WRITES}

    assert folder_calls() == {*FOLDER_WRITES, *FOLDER_READS}
    assert transactions() | folder | {"saver.setup"} == WRITES.keys() | ELSEWHERE.keys()
    points = {point for _, point, _ in cases(*STORIES)}
    assert [name for name in WRITES if not killed_on_both_sides(points, name)] == []
    for name, test in ELSEWHERE.items():
        assert killed_on_both_sides(set(TEXT.findall(source_of(test))), name), f"{test} does not kill around {name}"


def test_every_call_to_a_receiver_has_its_crash() -> None:
    assert clients() == CLIENTS
    assert claims_reads() == set(READS)
    assert effects() | {f"claims.{method}" for method in READS} == CALLS.keys() | CALLS_ELSEWHERE.keys()
    points = {point for _, point in calls()}
    assert [name for name in CALLS if not killed_on_both_sides(points, f"call {name}")] == []
    for name, test in CALLS_ELSEWHERE.items():
        killed = set(TEXT.findall(source_of(test)))
        assert killed_on_both_sides(killed, f"call {name}"), f"{test} does not kill around the call of {name}"


def test_what_only_reconciliation_asks_is_named_with_the_reason_why_nothing_dies_there() -> None:
    assert reads_of_reconciliation() == EXEMPT.keys()
