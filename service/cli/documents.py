"""
What `--json` prints: the journal's records as JSON objects. Money stays in integer minor units, times are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from checkpointing import Approval, EffectRecord, Entry, Run
from checkpointing.budget import Caps, Taken
from checkpointing.clock import from_ms
from graph.timeline import StepView, Timeline
from service.cli.advice import advice
from service.situation import Situation


def run_document(run: Run, at: Situation) -> dict[str, Any]:
    """Return a run's row with what to do next."""
    return {**_json(asdict(run)), "next": advice(run, at).as_json()}


def timeline_document(line: Timeline, at: Situation) -> dict[str, Any]:
    """Return a run with its steps."""
    return {**run_document(line.run, at), "steps": [_step(step) for step in line.steps]}


def taken_document(used: Taken, caps: Caps) -> dict[str, Any]:
    """Return what a run has taken, what is reserved among it, and its caps; `null` is no cap, times are in seconds."""
    return {"taken": _seconds(asdict(used)), "caps": _seconds(asdict(caps))}


def approval_document(approval: Approval) -> dict[str, Any]:
    """Return an approval as its row has it."""
    return _json(asdict(approval))


def effect_document(effect: EffectRecord) -> dict[str, Any]:
    """Return an effect as its row has it."""
    return _json(asdict(effect))


def entry_document(entry: Entry) -> dict[str, Any]:
    """Return an entry of the audit as its row has it, with its time as ISO 8601."""
    return {**asdict(entry), "at": from_ms(entry.at_ms).isoformat()}


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


def _seconds(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value.total_seconds() if isinstance(value, timedelta) else value for key, value in record.items()}


def _json(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in record.items()}
