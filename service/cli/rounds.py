"""
Every round of a run's questions in its timeline: those too that were superseded in a step that is not finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from checkpointing import Approval
from graph.timeline import StepView, Timeline


def with_every_round(line: Timeline, asked: Sequence[Approval]) -> Timeline:
    """Return *line* with each question its thread ever *asked* in the step that asked it, in the order they were asked."""
    placed = {one.id for step in line.steps for one in step.approvals}
    missing: dict[int, list[Approval]] = {}
    for one in asked:
        if one.id not in placed and (places := _places(line.steps, one)):
            missing.setdefault(places[-1], []).append(one)
    steps = tuple(
        replace(
            step, approvals=tuple(sorted((*missing.get(n, ()), *step.approvals), key=lambda a: (a.opened_at, a.round)))
        )
        for n, step in enumerate(line.steps)
    )
    return replace(line, steps=steps)


def _places(steps: Sequence[StepView], one: Approval) -> list[int]:
    """Return which steps may have asked it: those of its node that had begun, or its node's first where two clocks disagree."""
    of_node = [n for n, step in enumerate(steps) if one.node.split("/")[0] in step.nodes]
    return [n for n in of_node if steps[n].began <= one.opened_at] or of_node[:1]
