"""Which pages and which buttons are there for whom."""

from __future__ import annotations

import pytest

from tests.inbox.conftest import Make
from tests.inbox.pages import Pages

PAGES = (
    "/",
    "/operate",
    "/runs",
    "/approvals/{approval}",
    "/run?id=claim-0042",
    "/act/redrive?of=claim-0042",
    "/act/extend?of={approval}",
)
"""Each page, and what each role is answered with; the one who submitted is called `clerk`."""
MATRIX = {
    ("ada", "approver"): (200, 403, 403, 200, 200, 403, 200),
    ("olga", "operator"): (200, 200, 403, 200, 200, 200, 200),
    ("rita", "auditor"): (200, 200, 403, 200, 200, 403, 403),
    ("clerk", "submitter"): (200, 403, 200, 200, 200, 403, 403),
    ("carl", "submitter"): (200, 403, 200, 404, 404, 403, 403),
}


def test_every_role_on_every_page(inbox: Pages) -> None:
    asked = inbox.ask()
    for (name, role), wanted in MATRIX.items():
        visit = inbox.visit(name, role)
        found = []
        for path in PAGES:
            visit.get(path.format(approval=asked.id))
            found.append(visit.status)

        assert tuple(found) == wanted, name


def test_an_auditor_sees_everything_and_has_no_form_but_the_logout(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("rita", "auditor")
    for path in ("/", "/operate", f"/approvals/{asked.id}", "/run?id=claim-0042"):
        visit.get(path)
        assert visit.last.count('method="post"') == 1, path
        assert "/act/" not in visit.last
    assert "You may look, and not decide" in visit.get(f"/approvals/{asked.id}")
    assert "approval.open" in visit.get("/run?id=claim-0042")

    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)
    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (403, "pending")


def test_whoever_submitted_it_is_told_that_somebody_else_decides(inbox: Pages) -> None:
    asked = inbox.ask(by="ada")
    visit = inbox.visit("ada", "approver", "submitter")

    assert "Nothing waits for you" in visit.get("/")
    visit.get(f"/approvals/{asked.id}")
    assert "You submitted this yourself" in visit.said
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)
    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (403, "pending")


def test_only_those_who_are_asked_have_it_in_their_queue(make_inbox: Make) -> None:
    inbox = make_inbox(approvers=("group:seniors", "ben"))
    inbox.ask()

    assert "Claim" not in inbox.visit("ada", "approver").get("/").partition("<main")[2]
    for visit in (inbox.visit("ben", "approver"), inbox.visit("sue", "approver", groups=["seniors"])):
        assert "1,840.00 EUR" in visit.get("/")
    assert "This waits for the group seniors or ben" in inbox.visit("ada", "approver").get("/?show=all")


def test_a_submitter_is_not_shown_what_was_decided_of_others(inbox: Pages) -> None:
    other = inbox.ask("1", by="rival")
    inbox.decide(other, "reject", reason="Fraud.")
    own = inbox.ask("2", by="clerk")

    assert "Fraud." not in inbox.visit("clerk", "submitter").get(f"/approvals/{own.id}")
    assert "Fraud." in inbox.visit("ada", "approver").get(f"/approvals/{own.id}")


def test_an_id_that_no_database_takes_is_not_there(inbox: Pages) -> None:
    inbox.ask()
    visit = inbox.visit("ada", "approver")
    for path in ("/approvals/%00", "/run?id=claim-0042%00", f"/approvals/%00/documents/{'0' * 64}"):
        visit.get(path)
        assert visit.status == 404, path


def test_an_amount_of_thousands_of_digits_is_no_amount(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", {"field.1": "9" * 5000}, type="edit", payload_hash=asked.payload_hash)

    assert visit.status == 422


@pytest.mark.parametrize("name", ["nora", "clerk"])
def test_whoever_has_no_role_here_sees_nothing(inbox: Pages, name: str) -> None:
    asked = inbox.ask()
    visit = inbox.browser()
    visit.get("/login")
    visit.post("/login", token=inbox.token(name, "employee"), next="/")
    for path in (*PAGES, f"/approvals/{{approval}}/documents/{'0' * 64}"):
        visit.get(path.format(approval=asked.id))

        assert visit.status in (403, 404), path
