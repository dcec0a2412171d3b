"""A page in plain words for whatever went wrong."""

from __future__ import annotations

import pytest

from checkpointing.errors import GraphChanged, StoreUnreachable
from tests.inbox.pages import Pages


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (StoreUnreachable("the database did not answer"), 503, "Nothing is lost; try again in a moment."),
        (GraphChanged("the graph has no node 'approve'"), 409, "This is not possible any more"),
    ],
)
def test_an_error_of_ours_has_a_page(
    inbox: Pages, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, said: str
) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(inbox.journal.approvals, "votes", fail)
    visit.get(f"/approvals/{asked.id}")

    assert (visit.status, said in visit.said) == (status, True)
    assert "Back to the start" in visit.said


def test_a_page_says_so_while_nobody_can_be_recognised(inbox: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    visit = inbox.visit("ada", "approver")

    def fail(*_: object, **__: object) -> None:
        raise StoreUnreachable("the database did not answer")

    monkeypatch.setattr(inbox.journal.sessions, "find", fail)
    visit.get("/")
    assert (visit.status, "Not just now" in visit.said, "Log out" in visit.last) == (503, True, False)


def test_what_is_not_there_and_what_is_anothers_look_the_same(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("carl", "submitter")
    visit.get(f"/approvals/{asked.id}")
    anothers = (visit.status, visit.said)
    visit.get("/approvals/apr_00000000000000000000")

    assert anothers == (404, visit.said)


def test_a_bad_token_in_a_header_leads_to_the_login_and_not_round_and_round(inbox: Pages) -> None:
    visit = inbox.browser()
    visit.client.headers["Authorization"] = "Bearer cft_nobodys"
    visit.get("/")

    assert (visit.status, visit.address) == (401, "/login")
    assert "cft_nobodys" not in visit.last
