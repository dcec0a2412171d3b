"""
A run's timeline as a picture: HTML with inline SVG, no script, and no colour of its own but for bars and dots, so that it reads on light and dark.

Everything shown is escaped: a claim's text is its claimant's. Drawing only reads what `graph.timeline` read; a drawing of the same timeline is the
same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any

from checkpointing import Approval, EffectRecord
from graph.axis import WIDTH, Axis
from graph.timeline import StepView, Timeline
from nodes.state import CHANNELS

LONGEST_VALUE = 1200
"""How many characters are shown of a value that changed."""
LONGEST_UNCHANGED = 160
"""And of one that did not, on one line."""

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))

GREEN, AMBER, RED, BLUE = "#2e9e63", "#c2801f", "#d0504a", "#4a86c5"
COLOURS = {
    "settled": GREEN, "decided": GREEN, "claimed": AMBER, "pending": AMBER, "declined": AMBER, "expired": AMBER,
    "in_doubt": RED, "released": RED, "superseded": RED, "withdrawn": RED, "done": GREEN, "parked": AMBER, "dead": RED,
}  # fmt: skip

STYLE = """<style>
.counterfoil{font:13px/1.45 system-ui,sans-serif;color:inherit;max-width:1180px;overflow-x:auto}
.counterfoil.counterfoil table{border-collapse:collapse;margin:6px 0;font-size:inherit;color:inherit;width:auto;table-layout:auto}
.counterfoil.counterfoil tr{background:none}
.counterfoil.counterfoil th,.counterfoil.counterfoil td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;border:0;white-space:normal;max-width:none}
.counterfoil.counterfoil tbody tr{border-top:1px solid #8884}
.counterfoil.counterfoil th{font-weight:600}
.counterfoil.counterfoil code,.counterfoil.counterfoil pre{font:12px/1.4 ui-monospace,monospace;background:none;color:inherit;padding:0;margin:0;
overflow-wrap:anywhere;white-space:pre-wrap}
.counterfoil.counterfoil table.step{width:100%;table-layout:fixed}
.counterfoil i{font-style:normal;opacity:.72}
.counterfoil b.dot{display:inline-block;width:8px;height:8px;border-radius:4px;margin-right:6px}
.counterfoil .axis{display:flex;justify-content:space-between;white-space:nowrap;font-weight:400}
.counterfoil svg{display:block;overflow:visible}
</style>"""


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """
    A picture that a notebook shows and a file keeps.

    Attributes:
        html: The whole picture, which needs nothing from elsewhere.
        of: What it shows, in a few words: `claim-0042, steps: 12`.
    """

    html: str
    of: str

    def __repr__(self) -> str:
        """Say what it shows; the HTML is too long for a terminal."""
        return f"<Drawing of {self.of}>"

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True, slots=True)
class Change:
    """
    One value a step changed.

    Attributes:
        key: The state key; for the record's channels with the entry, as in `effects[pay.0]`.
        before: What stood there, `None` if nothing did.
        after: What the step wrote.
    """

    key: str
    before: Any
    after: Any


WHY = {"parked": "waited", "dead": "dead letter for", "done": "done for", "left": "left for", "died": "worker died, nobody for"}  # fmt: skip


def draw(timeline: Timeline) -> Drawing:
    """
    Draw the whole run: a row a step, its bar on the time axis, and what it did, asked and waited for.

    Pauses that would squeeze everything else are compressed: they are dashed and carry their length.
    """
    axis = Axis(timeline)
    rows = "".join(_row(step, timeline, axis) for step in timeline.steps)
    table = (
        f"<table><thead><tr><th>step</th><th>node</th><th>{_legend(axis)}</th><th>what happened</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        if rows
        else "<p>Nothing has run yet.</p>"
    )
    html = f'{STYLE}<div class="counterfoil">{_head(timeline)}{table}</div>'
    return Drawing(html, of=f"{timeline.run.thread_id}, steps: {len(timeline.steps)}")


def draw_step(step: StepView) -> Drawing:
    """Draw one step: the state it started from, and beside it what it changed."""
    changes = what_changed(step.before, step.update)
    touched = {change.key for change in changes}
    rows = [
        f"<tr><td><code>{_text(c.key)}</code></td><td>{_value(c.before)}</td><td>{_value(c.after)}</td></tr>"
        for c in changes
    ]
    rows += [
        f"<tr><td><code>{_text(key)}</code></td><td>{_glimpse(value)}</td><td><i>unchanged</i></td></tr>"
        for key, value in step.before.items()
        if key not in touched and key not in CHANNELS
    ]
    wrote = "what it changed" if step.ended else "it is not finished"
    did = "".join(f"<div>{line}</div>" for line in _did(step))
    return Drawing(
        f'{STYLE}<div class="counterfoil"><b>step {step.number}: {_text(", ".join(step.nodes))}</b>{did}'
        f'<table class="step"><thead><tr><th style="width:18%">key</th><th>state in</th><th>{wrote}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>",
        of=f"step {step.number}: {', '.join(step.nodes)}",
    )


def what_changed(before: Mapping[str, Any], update: Mapping[str, Any]) -> list[Change]:
    """
    Return what *update* changes of *before*, in the update's order; a value written again as it was is no change.

    The record's channels are compared entry by entry. Of another channel with a reducer, *after* is what was written, not what the reducer made of it.
    """
    changes = []
    for key, written in update.items():
        stood = before.get(key)
        if key in CHANNELS and isinstance(written, Mapping):
            entries = stood if isinstance(stood, Mapping) else {}
            changes += [
                Change(f"{key}[{name}]", entries.get(name), entry)
                for name, entry in written.items()
                if name not in entries or entries[name] != entry
            ]
        elif key not in before or stood != written:
            changes.append(Change(key, stood, written))
    return changes


def duration(time: timedelta) -> str:
    """Return a duration in its two largest units: `2 d 23 h`, `4 min 10 s`, `0.8 s`, `40 ms`."""
    seconds = max(0.0, time.total_seconds())
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds >= 0.1 else f"{round(seconds * 1000)} ms"
    left, parts = round(seconds), []
    for name, size in UNITS:
        if left >= size:
            parts.append(f"{left // size} {name}")
            left %= size
    return " ".join(parts[:2])


def _head(timeline: Timeline) -> str:
    run = timeline.run
    said = [f"turn {run.turn}"] if run.turn > 1 else []
    said += [f"submitted by {run.submitted_by}"] if run.submitted_by else []
    said += [f"taken over from a dead worker {_times(run.resumes)}"] if run.resumes else []
    reason = f" ({run.reason})" if run.reason else ""
    error = f"<div>{_dot('dead')}{_text(run.error)}</div>" if run.error else ""
    return (
        f"<div>{_dot(run.state)}<b>{_text(run.thread_id)}</b> is {_text(run.state + reason)} <i>{_text(', '.join(said))}</i></div>{error}"
    )  # fmt: skip


def _legend(axis: Axis) -> str:
    note = f"{duration(axis.shown)} of work, pauses compressed" if axis.long else ""
    parts = (f"{axis.began:%Y-%m-%d %H:%M:%S} UTC", note, f"{axis.ended:%H:%M:%S}")
    return f'<div class="axis" style="width:{WIDTH}px">{"".join(f"<i>{part}</i>" for part in parts)}</div>'


def _row(step: StepView, timeline: Timeline, axis: Axis) -> str:
    did = "".join(f"<div>{line}</div>" for line in [*_did(step), *_waits(step, timeline, axis)])
    return (
        f"<tr><td>{step.number}</td><td>{_text(', '.join(step.nodes))}<br><i>{_worked(step, axis)}</i></td>"
        f"<td>{_bar(step, timeline, axis)}</td><td>{did}</td></tr>"
    )


def _bar(step: StepView, timeline: Timeline, axis: Axis) -> str:
    standing = step is timeline.standing
    left, right = axis.x(step.began), axis.x(step.ended or axis.ended)
    parts = [
        f'<rect x="{axis.x(p.began):.1f}" width="{axis.pause_width:.1f}" height="22" fill="#888" opacity=".13"/>'
        for p in axis.long
    ]
    inside = [p for p in axis.long if p.began < (step.ended or axis.ended) and p.end > step.began]
    edges = [left, *(axis.x(at) for p in inside for at in (p.began, p.end)), right]
    parts += [_piece(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    for pause in inside:
        parts.append(_dashes(axis.x(pause.began), axis.x(pause.end), duration(pause.length), pause.kind))
    if standing and axis.open:
        parts.append(_dashes(right, right + axis.tail, "until now", axis.open.kind))
    parts += [_mark(axis.x(at), colour, what) for at, colour, what in _marks(step, axis)]
    title = _text(f"step {step.number}: {duration((step.ended or axis.ended) - step.began)}")
    return f'<svg width="{WIDTH}" height="22" role="img"><title>{title}</title>{"".join(parts)}</svg>'


def _piece(left: float, right: float) -> str:
    return f'<rect x="{min(left, WIDTH - 3):.1f}" y="6" width="{max(3.0, right - left):.1f}" height="10" rx="2" fill="{BLUE}"/>'


def _dashes(left: float, right: float, label: str, kind: str) -> str:
    colour = RED if kind in ("dead", "died") else AMBER
    return (
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="17" y2="17" stroke="{colour}" stroke-width="3" stroke-dasharray="5 4"/>'
        f'<text x="{(left + right) / 2:.1f}" y="11" text-anchor="middle" font-size="11" fill="currentColor">{_text(label)}</text>'
    )


def _marks(step: StepView, axis: Axis) -> Iterator[tuple[datetime, str, str]]:
    """What happened at an instant of this very step: outcomes and decisions."""
    until = step.ended or axis.ended
    for effect in step.effects:
        if effect.settled_at and step.began <= effect.settled_at <= until:
            yield effect.settled_at, COLOURS[_state(effect)], f"{effect.effect} {_state(effect)}"
    for approval in step.approvals:
        if approval.decided_at and step.began <= approval.decided_at <= until:
            yield approval.decided_at, COLOURS[approval.state], f"{approval.name} {approval.state}"


def _mark(x: float, colour: str, what: str) -> str:
    return f'<circle cx="{x:.1f}" cy="11" r="4" fill="{colour}" stroke="#fff" stroke-width="1"><title>{_text(what)}</title></circle>'


def _did(step: StepView) -> Iterator[str]:
    for effect in step.effects:
        replays = f", {effect.replays} from the record" if effect.replays else ""
        calls = f"{effect.calls} calls, one key" if effect.calls > 1 else "1 call"
        yield (
            f"{_dot(_state(effect))}{_text(effect.effect)} {_text(_state(effect).replace('_', ' '))} <i>{calls}{replays}</i>"
            f"<br><code>{_text(effect.key)}</code>"
        )
    for approval in step.approvals:
        yield f"{_dot(approval.state)}{_text(_decided(approval))}<br><code>{_text(approval.id)}</code>"
    if step.attempts:
        yield f"<i>a worker started here {_times(step.attempts)}</i>"


def _worked(step: StepView, axis: Axis) -> str:
    """Return how long the step took, without the pauses that began in it; nothing for the step the run stands in."""
    if step.ended is None:
        return ""
    paused = (p.length for p in axis.pauses if step.began <= p.began < step.ended)
    return duration(step.ended - step.began - sum(paused, timedelta(0)))


def _waits(step: StepView, timeline: Timeline, axis: Axis) -> Iterator[str]:
    for pause in axis.pauses:
        if step.began <= pause.began < (step.ended or axis.ended) and pause in axis.long:
            yield f"<i>{WHY[pause.kind]} {duration(pause.length)}</i>"
    if step is timeline.standing and axis.open:
        yield f"<i>{axis.open.kind} since {axis.open.began:%Y-%m-%d %H:%M:%S} UTC</i>"


def _decided(approval: Approval) -> str:
    kind = approval.decision["type"] if approval.decision else ""
    match approval.state:
        case "decided":
            return f"{approval.name}: {kind} by {approval.decided_by}"
        case "expired":
            return f"{approval.name}: expired, which counts as {kind}"
        case "withdrawn":
            return f"{approval.name}: withdrawn by {approval.withdrawn_by}"
        case "superseded":
            return f"{approval.name}: superseded, the payload changed"
        case _:
            return f"{approval.name}: waits for a decision"


def _state(effect: EffectRecord) -> str:
    return effect.state if effect.declined is None else "declined"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _dot(state: str) -> str:
    return f'<b class="dot" style="background:{COLOURS.get(state, BLUE)}"></b>'


def _glimpse(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return f"<pre>{_text(shown[:LONGEST_UNCHANGED])}{'…' if len(shown) > LONGEST_UNCHANGED else ''}</pre>"


def _value(value: Any) -> str:
    if value is None:
        return "<i>nothing</i>"
    shown = json.dumps(value, indent=1, ensure_ascii=False, default=repr)
    more = f"<i>… {len(shown) - LONGEST_VALUE} more characters</i>" if len(shown) > LONGEST_VALUE else ""  # fmt: skip
    return f"<pre>{_text(shown[:LONGEST_VALUE])}</pre>{more}"


def _text(value: object) -> str:
    return escape(str(value), quote=True)
