"""LangGraph's own conformance suite, unfenced, for every capability a saver claims."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance.initializer import checkpointer_test
from langgraph.checkpoint.conformance.validate import validate

from checkpointing import open_journal

BASE = {"put", "put_writes", "get_tuple", "list", "delete_thread"}


def test_the_saver_passes_every_capability_it_claims(new_url: Callable[[], str]) -> None:
    @checkpointer_test(name="counterfoil")
    async def saver() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
        with open_journal(new_url()) as journal:
            yield journal.saver

    report = asyncio.run(validate(saver))

    claimed = {name for name, result in report.results.items() if result.detected}
    failures = {name: report.results[name].failures for name in claimed if not report.results[name].passed}
    assert failures == {}
    assert claimed == BASE
    assert all(report.results[name].tests_passed > 0 for name in claimed)
