"""
The counts in Prometheus's text format.

Labels are what there are few of: states, graphs, names of approvals and effects, reasons. Never a thread, an approval or a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from checkpointing.admissions import RunState
from checkpointing.counts import Counts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[dict[str, str], float]


def exposition(counts: Counts) -> str:
    """Return *counts* as Prometheus reads them."""
    return "\n".join([*_lines(counts), ""])


def _lines(counts: Counts) -> Iterator[str]:
    graphs = sorted({graph for _, graph in counts.runs})
    runs: list[Sample] = [
        ({"state": state, "graph": graph}, counts.runs.get((state, graph), 0))
        for graph in graphs
        for state in get_args(RunState)
    ]
    yield from _gauge("counterfoil_runs", "Runs by state and graph.", runs)
    yield from _gauge(
        "counterfoil_approvals_pending", "Approvals that wait for a decision.", _by("name", counts.pending)
    )
    overdue = "Approvals that wait although their time is over: no worker has looked at them yet."
    yield from _gauge("counterfoil_approvals_overdue", overdue, _by("name", counts.overdue))
    yield from _gauge("counterfoil_dead_letters", "Dead letters that nobody gave up.", _by("reason", counts.dead))
    doubt = "Effects of which somebody has to say what happened."
    yield from _gauge("counterfoil_effects_in_doubt", doubt, _by("effect", counts.in_doubt))
    ready = "Runs that a worker could take up now."
    yield from _gauge("counterfoil_queue_ready", ready, _by("graph", counts.ready))
    lag = {graph: since.total_seconds() for graph, since in counts.lag.items()}
    yield from _gauge("counterfoil_queue_lag_seconds", "How long the first of those has been ready.", _by("graph", lag))
    yield from _gauge("counterfoil_notices_untold", "Notices that are to be told.", [({}, counts.untold)])


def _by(label: str, found: dict[str, int] | dict[str, float]) -> list[Sample]:
    """Return one sample a key; 0 without a label where there is none, so that an alarm has something to look at."""
    return [({label: key}, value) for key, value in sorted(found.items())] or [({}, 0)]


def _gauge(name: str, text: str, samples: list[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        written = ",".join(f'{label}="{_escaped(content)}"' for label, content in labels.items())
        yield f"{name}{{{written}}} {value:g}" if written else f"{name} {value:g}"


def _escaped(content: str) -> str:
    return content.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
