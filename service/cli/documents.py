"""
What `--json` prints: the journal's records as JSON objects. Money stays in integer minor units, times are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from checkpointing import Approval, EffectRecord, Journal, Run
from graph.timeline import StepView, Timeline
from service.cli.advice import advice


def run_document(journal: Journal, run: Run) -> dict[str, Any]:
    """Return a run's row with what to do next."""
    return {**_json(asdict(run)), "next": advice(journal, run).as_json()}


def timeline_document(journal: Journal, line: Timeline) -> dict[str, Any]:
    """Return a run with its steps."""
    return {**run_document(journal, line.run), "steps": [_step(step) for step in line.steps]}


def approval_document(approval: Approval) -> dict[str, Any]:
    """Return an approval as its row has it."""
    return _json(asdict(approval))


def effect_document(effect: EffectRecord) -> dict[str, Any]:
    """Return an effect as its row has it."""
    return _json(asdict(effect))


def _step(step: StepView) -> dict[str, Any]:
    return {
        "number": step.number,
        "nodes": list(step.nodes),
        "update": dict(step.update),
        "began": step.began.isoformat(),
        "ended": step.ended.isoformat() if step.ended else None,
        "attempts": step.attempts,
        "waited_ms": int(step.waited / timedelta(milliseconds=1)),
        "effects": [effect_document(effect) for effect in step.effects],
        "approvals": [approval_document(approval) for approval in step.approvals],
        "checkpoint_id": step.checkpoint_id,
    }


def _json(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in record.items()}
