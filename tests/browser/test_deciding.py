"""An adjuster at work: they log in, find what waits, read it, and decide."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.acts import log_in
from tests.browser.conftest import OpenPage
from tests.browser.site import Site


def test_an_adjuster_finds_reads_and_approves(site: Site, open_page: OpenPage) -> None:
    thread_id = site.submit("b-approve")
    asked = site.pending(thread_id)
    page = open_page()

    log_in(page, site.token("ada", "approver"))
    page.get_by_role("link", name="Claim b-approve").click()
    expect(page.get_by_text("acct_claimant0042").first).to_be_visible()
    page.get_by_role("button", name="Approve 1,840.00 EUR").click()

    expect(page.get_by_role("heading", name="You have approved this")).to_be_visible()
    decided = site.journal.approvals.get(asked.id)
    assert (decided.state, decided.decided_by, decided.decision) == ("decided", "ada", {"type": "approve"})
    site.go_on(thread_id)
    assert site.journal.runs.get(thread_id).state == "done"
