"""Notices as they are set up and looked after: settings, a worker process, and the commands an operator has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointing import open_journal
from graph import thread
from service.notices.graph import BACKOFF
from service.notices.routes import Routes, read_addresses
from service.settings import load_settings
from tests.service.conftest import Cli, Filed, approval_of, in_process
from tests.service.test_worker_command import worker
from tests.support.consumer import OTHER_SECRET, SECRET, Consumer
from tests.support.mailbox import Mailbox
from tests.support.processes import until
from tests.support.telling import asking, carry_on, posting
from tools.sandbox import SandboxControl

HIDDEN = "open-sesame"
OWN_GRAPH = """
from tests.support.telling import asking as make
"""


def configured(hook: Consumer, box: Mailbox) -> dict[str, str]:
    """Return settings that tell both."""
    return {
        "COUNTERFOIL_BASE_URL": "https://inbox.example/",
        "COUNTERFOIL_WEBHOOKS": f"{hook.url} {OTHER_SECRET} {SECRET}",
        "COUNTERFOIL_SMTP_URL": box.url,
        "COUNTERFOIL_NOTICE_SENDER": "Claims <claims@carrier.example>",
        "COUNTERFOIL_NOTICE_TO": "desk@carrier.example, group:heads=heads@carrier.example, ada=ada@carrier.example",
    }


def listed(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    found = cli("list", "--json", *arguments).document
    assert isinstance(found, list)
    return found


def done(cli: Cli, count: int) -> Callable[[], bool | None]:
    """Tell, for `until`, whether so many notices were told."""
    return lambda: [one["state"] for one in listed(cli, "--graph", "notices")] == ["done"] * count or None


def test_a_claim_is_told_of_and_its_notices_are_listed_when_asked_for(
    cli: Cli,
    filed: Callable[..., Filed],
    settings: dict[str, str],
    control: SandboxControl,
    hook: Consumer,
    box: Mailbox,
    tmp_path: Path,
) -> None:
    claim = filed()
    with worker({**settings, **configured(hook, box)}, tmp_path):
        cli(*claim.submit, "--detach")
        until(done(cli, 2))
        asked = approval_of(cli, claim)
        cli("approve", asked, "--as", "adjuster-17", "--detach")
        until(done(cli, 3))

    assert hook.events == ["approval.open", "approval.decide"]
    assert [one.verified()["data"]["url"] for one in hook.sent] == [f"https://inbox.example/approvals/{asked}"] * 2
    assert box.recipients == [["desk@carrier.example"]]
    assert [one["thread_id"] for one in listed(cli)] == [claim.thread_id]
    assert [one["thread_id"] for one in listed(cli, "--graph", "claims")] == [claim.thread_id]
    assert listed(cli, "--graph", "none") == []
    assert "There is no run of graph none in state dead" in cli("list", "--graph", "none", "--state", "dead").stdout
    cli("audit", "verify")


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_graph_of_ones_own_is_told_of(
    cli: Cli, settings: dict[str, str], url: str, hook: Consumer, box: Mailbox, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(OWN_GRAPH)
    with worker({**settings, **configured(hook, box), "PYTHONPATH": "."}, tmp_path, "--graph", "mine:make"):
        with open_journal(url) as journal:
            asking(journal).submit({"amount": 1}, thread("order-1"))
        until(done(cli, 2))

    assert hook.events == ["approval.open"]
    assert box.recipients == [["ada@carrier.example"]]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_notice_that_could_not_be_told_is_seen_and_redriven(
    cli: Cli, settings: dict[str, str], url: str, hook: Consumer, box: Mailbox, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(OWN_GRAPH)
    hook.answers.append(404)
    own = ("--graph", "mine:make")
    with open_journal(url) as journal:
        asking(journal).submit({"amount": 1}, thread("order-1"))
    with worker({**settings, **configured(hook, box)}, tmp_path, *own):
        [dead] = until(lambda: cli("dead", "--json").document or None)
        assert (dead["graph"], dead["reason"]) == ("notices", "rejected")
        assert "answered 404" in cli("dead", dead["thread_id"]).stdout
        cli("redrive", dead["thread_id"], "--as", "operator-3", "--reason", "moved")
        until(done(cli, 2))

    assert hook.ids == [hook.ids[0]] * 2
    assert cli("dead", "--json").document == []


def test_a_notice_that_waits_is_a_workers_to_carry_on(cli: Cli, url: str) -> None:
    with open_journal(url) as journal:
        graph, notices = asking(journal), posting(journal, "http://127.0.0.1:1/", backoff=BACKOFF)
        graph.submit({"amount": 1}, thread("order-1"))
        carry_on(graph, notices)

    [telling] = listed(cli, "--graph", "notices")
    said = " ".join(cli("show", telling["thread_id"]).stdout.split())
    assert "There is something to tell and nobody is doing it. The last attempt failed: NoConnection" in said
    assert said.endswith("UTC on (counterfoil worker).")


WHOLE = {
    "COUNTERFOIL_SMTP_URL": "smtp://mail.example",
    "COUNTERFOIL_NOTICE_SENDER": "claims@carrier.example",
    "COUNTERFOIL_NOTICE_TO": "desk@carrier.example",
    "COUNTERFOIL_BASE_URL": "https://inbox.example",
}


@pytest.mark.parametrize("missing", WHOLE)
def test_half_of_what_mail_takes_is_refused_with_the_other_half(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {name: value for name, value in WHOLE.items() if name != missing}

    assert in_process(given)("list", code=2).line == f"counterfoil: notices by mail take {missing} too"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEBHOOKS", f"http://a.example/{HIDDEN} {SECRET}"),
        ("WEBHOOKS", f"https://a.example/{HIDDEN}"),
        ("WEBHOOKS", f"https://a.example/ whsec_{HIDDEN}"),
        ("WEBHOOKS", f"https://a.example/{HIDDEN} {SECRET},https://a.example/{HIDDEN} {SECRET}"),
        ("WEBHOOK_EVENTS", f"approval.open,{HIDDEN}"),
        ("NOTICE_EVENTS", HIDDEN),
        ("SMTP_URL", f"smtp://a:{HIDDEN}@"),
        ("SMTP_URL", f"a:{HIDDEN}@mail.example"),
        ("NOTICE_TO", HIDDEN),
        ("NOTICE_TO", f"ada=ada@carrier.example,ada={HIDDEN}@carrier.example"),
        ("NOTICE_SENDER", HIDDEN),
        ("BASE_URL", f"https://me:{HIDDEN}@inbox.example"),
    ],
)
def test_what_notices_cannot_be_sent_with_is_refused_without_its_value(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = in_process({f"COUNTERFOIL_{name}": value})("list", code=2)

    assert said.line.startswith(f"counterfoil: COUNTERFOIL_{name}: ")
    assert HIDDEN not in said.stderr
    assert SECRET not in said.stderr


def test_settings_are_printed_without_their_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in WHOLE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COUNTERFOIL_SMTP_URL", f"smtp://a:{HIDDEN}@mail.example")
    monkeypatch.setenv("COUNTERFOIL_WEBHOOKS", f"https://a.example/{HIDDEN} {SECRET}")

    shown = repr(load_settings())
    assert HIDDEN not in shown
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("approvers", "reached"),
    [
        (None, ["desk@c.example"]),
        (("ada",), ["ada@c.example"]),
        (("bob",), ["desk@c.example"]),
        (("ada", "bob", "group:heads", "group:others"), ["ada@c.example", "desk@c.example", "heads@c.example"]),
        (("a=b",), ["ab@c.example"]),
    ],
)
def test_an_approver_is_reached_at_their_address_or_at_everybodys(
    approvers: tuple[str, ...] | None, reached: list[str]
) -> None:
    text = "desk@c.example, ada=ada@c.example, group:heads = heads@c.example, a=b=ab@c.example,"

    assert Routes(addresses=read_addresses(text)).reached(approvers) == reached
    assert Routes(addresses=read_addresses("ada=ada@c.example")).reached(("bob",)) == []
