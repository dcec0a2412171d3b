"""No page of somebody else's makes anybody do anything, and no link does: every POST is asked for by our own page, and a GET changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.inbox.pages import HERE, Pages

OURS = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}
FOREIGN: tuple[Mapping[str, str], ...] = (
    {"Origin": HERE, "Sec-Fetch-Site": "cross-site"},
    {"Origin": HERE, "Sec-Fetch-Site": "same-site"},
    {"Origin": HERE, "Sec-Fetch-Site": "none"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {},
)
"""What a browser says of a form that none of our own pages has sent."""
POSTS = ("/login", "/logout", "/approvals/{approval_id}", "/act/{name}")
TABLES = (
    "approvals", "approval_votes", "audit", "audit_heads", "effects", "leases", "login_failures", "notices", "runs", "sessions",
    "submissions", "tokens",
)  # fmt: skip


def everything(inbox: Pages) -> dict[str, list[dict[str, Any]]]:
    """Return every row that there is."""
    with inbox.journal.store.reading() as tx:
        return {table: sorted(tx.all(f"select * from {table}"), key=str) for table in TABLES}  # noqa: S608  # our own names


def test_these_are_all_the_forms_there_are(inbox: Pages) -> None:
    assert set(inbox.routes("POST")) == set(POSTS)


@pytest.mark.parametrize("path", POSTS)
def test_a_form_of_another_page_is_refused_and_changes_nothing(inbox: Pages, path: str) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver", "operator")
    token = inbox.token("bo", "approver")
    if path == "/login":
        visit = inbox.browser()
        visit.get("/login")
    form = {
        "type": "approve",
        "payload_hash": asked.payload_hash,
        "of": asked.thread_id,
        "reason": "because",
        "token": token,
    }
    at, csrf, before = path.format(approval_id=asked.id, name="redrive"), visit.csrf, everything(inbox)

    for headers, with_token in ((OURS, ""), (OURS, "0" * 64), *((one, csrf) for one in FOREIGN)):
        visit.post(at, form, headers=headers, csrf=with_token)
        assert (visit.status, "Nothing was changed" in visit.said) == (403, True), headers
        assert everything(inbox) == before, headers


def test_the_token_of_somebody_elses_page_is_of_no_use(inbox: Pages) -> None:
    asked = inbox.ask()
    ada, eve = inbox.visit("ada", "approver"), inbox.visit("eve", "approver")
    eve.get("/")
    ada.get(f"/approvals/{asked.id}")
    ada.post(f"/approvals/{asked.id}", csrf=eve.csrf, type="approve")

    assert ada.status == 403
    assert inbox.journal.approvals.get(asked.id).state == "pending"


def test_the_token_of_a_session_that_is_over_is_of_no_use(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    old = visit.csrf
    visit.post("/logout")
    visit.post("/login", token=inbox.token("ada", "approver"))
    visit.get(f"/approvals/{asked.id}")
    assert visit.csrf != old
    visit.post(f"/approvals/{asked.id}", csrf=old, type="approve", payload_hash=asked.payload_hash)

    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (403, "pending")


def test_an_origin_is_enough_where_a_browser_says_no_more(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", headers={"Origin": HERE}, type="approve", payload_hash=asked.payload_hash)

    assert inbox.journal.approvals.get(asked.id).decided_by == "ada"


def test_no_get_changes_anything(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver", "operator", "auditor", "submitter")
    before = everything(inbox)

    for path in inbox.routes("GET"):
        visit.get(path.format(approval_id=asked.id, sha256="0" * 64, name="redrive") + "?id=claim-0042&of=claim-0042")
        assert visit.status in (200, 404), path
    for name, of in (("redrive", asked.thread_id), ("withdraw", asked.id), ("extend", asked.id)):
        visit.get(f"/act/{name}?of={of}&reason=because&hours=24")
        assert visit.status == 200
    visit.get(f"/approvals/{asked.id}?type=approve&csrf={visit.csrf}")

    assert everything(inbox) == before


def test_a_form_that_nobody_types_is_not_read(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", type="reject", reason="x" * 300_000)

    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (413, "pending")
