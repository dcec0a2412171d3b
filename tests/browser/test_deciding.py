"""An adjuster at work: they log in, find what waits, read it, and decide; on a phone, by keyboard alone, and without JavaScript too."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from checkpointing import Approval
from tests.browser.acts import log_in
from tests.browser.conftest import OpenPage
from tests.browser.site import Site


def opened(site: Site, page: Page, claim_id: str) -> Approval:
    """Submit a claim, log in, and find it in the queue."""
    asked = site.pending(site.submit(claim_id))
    log_in(page, site.token("ada", "approver"))
    page.get_by_role("link", name=f"Claim {claim_id}").click()
    expect(page.get_by_role("heading", name="Your decision")).to_be_visible()
    return asked


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_an_adjuster_finds_reads_and_approves(
    site: Site, open_page: OpenPage, request: pytest.FixtureRequest, *, phone: bool, script: bool
) -> None:
    claim_id = f"b-approve-{phone:d}{script:d}"
    page = open_page(phone=phone, script=script)
    asked = opened(site, page, claim_id)

    expect(page.get_by_text("The payout is above")).to_be_visible()
    expect(page.get_by_text("A delivery van rolled back")).to_be_visible()
    expect(page.get_by_text("acct_claimant0042").first).to_be_visible()
    expect(page.get_by_text("Deductible", exact=True)).to_be_visible()
    page.get_by_text("Police report").click()
    expect(page.get_by_label("Police report", exact=True)).to_be_visible()
    assert page.locator(".document img").evaluate("one => one.complete && one.naturalWidth > 0") if script else True
    page.get_by_role("button", name="Approve 1,840.00 EUR").click()

    expect(page.get_by_role("heading", name="You have approved this")).to_be_visible()
    expect(page.get_by_text("Nothing else waits for you")).to_be_visible()
    decided = site.journal.approvals.get(asked.id)
    assert (decided.state, decided.decided_by, decided.decision) == ("decided", "ada", {"type": "approve"})
    site.go_on(asked.thread_id)
    page.get_by_role("link", name="See the run").click()
    expect(page.get_by_text("paid", exact=True)).to_be_visible()


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_an_adjuster_changes_the_amount(site: Site, open_page: OpenPage, *, script: bool) -> None:
    page = open_page(script=script)
    asked = opened(site, page, f"b-edit-{script:d}")

    page.get_by_text("Change it, then approve").click()
    expect(page.get_by_text("Between 0.01 EUR and 10,000.00 EUR.")).to_be_visible()
    page.get_by_label("Amount in EUR").fill("17900000")
    page.get_by_label("Why (optional, recorded)").fill("A discount of 50.00")
    page.get_by_role("button", name="Approve as changed").click()
    expect(page.get_by_text("Out of bounds.")).to_be_visible()
    expect(page.get_by_label("Amount in EUR")).to_have_value("17900000")
    expect(page.get_by_label("Why (optional, recorded)")).to_have_value("A discount of 50.00")
    page.get_by_label("Amount in EUR").fill("1,790.00")
    page.get_by_role("button", name="Approve as changed").click()

    expect(page.get_by_role("heading", name="You have changed and approved this")).to_be_visible()
    expect(page.get_by_role("row", name="Amount 1,840.00 EUR 1,790.00 EUR")).to_be_visible()
    decided = site.journal.approvals.get(asked.id)
    assert decided.decision == {
        "type": "edit",
        "payload": {**asked.payload, "amount": 179_000},
        "reason": "A discount of 50.00",
    }


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_an_adjuster_rejects_with_a_reason(site: Site, open_page: OpenPage, *, script: bool) -> None:
    page = open_page(script=script)
    asked = opened(site, page, f"b-reject-{script:d}")

    page.locator("summary", has_text="Reject").click()
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("alert").filter(has_text="Say why")).to_be_visible()
    page.get_by_label("Why", exact=True).fill("The same damage was claimed in March.")
    page.get_by_role("button", name="Reject").click()

    expect(page.get_by_role("heading", name="You have rejected this")).to_be_visible()
    assert site.journal.approvals.get(asked.id).decision == {
        "type": "reject",
        "reason": "The same damage was claimed in March.",
    }


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_whoever_loses_the_race_is_told_by_whom(site: Site, open_page: OpenPage, *, script: bool) -> None:
    page = open_page(script=script)
    asked = opened(site, page, f"b-race-{script:d}")
    site.approve(asked.thread_id, by="ben")

    page.get_by_role("button", name="Approve").first.click()

    expect(page.get_by_role("heading", name="ben was faster")).to_be_visible()
    expect(page.get_by_text("You wanted to approve it; that was not recorded.")).to_be_visible()
    assert site.journal.approvals.get(asked.id).decided_by == "ben"


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_whoever_comes_after_the_end_is_told_what_it_came_to(site: Site, open_page: OpenPage, *, script: bool) -> None:
    asked = site.pending(site.submit(f"b-late-{script:d}"))
    site.clock.move(timedelta(days=3) - timedelta(minutes=1))
    page = open_page(script=script)
    log_in(page, site.token("ada", "approver"))
    expect(page.get_by_text("1 minute left")).to_be_visible()
    page.get_by_role("link", name=asked.thread_id.replace("claim-", "Claim ")).click()
    site.clock.move(timedelta(minutes=2))

    page.get_by_role("button", name="Approve").first.click()
    expect(page.get_by_role("heading", name="The time is over")).to_be_visible()
    site.go_on(asked.thread_id)
    page.goto(f"/approvals/{asked.id}")
    expect(page.get_by_text("So it is rejected.")).to_be_visible()
    assert site.journal.approvals.get(asked.id).state == "expired"


def test_a_link_from_a_notice_leads_over_the_login_to_the_approval_and_decides_nothing(
    site: Site, open_page: OpenPage
) -> None:
    asked = site.pending(site.submit("b-link"))
    page = open_page()
    log_in(page, site.token("ada", "approver"), at=f"/approvals/{asked.id}")

    expect(page.get_by_role("heading", name="Claim b-link")).to_be_visible()
    assert site.journal.approvals.get(asked.id).state == "pending"


def test_a_claim_is_approved_by_keyboard_alone(site: Site, open_page: OpenPage) -> None:
    first, second = (site.pending(site.submit(f"b-keys-{number}")) for number in (1, 2))
    page = open_page()
    page.goto("/")
    expect(page.get_by_label("Access token")).to_be_focused()
    page.keyboard.type(site.token("ada", "approver"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Claim b-keys-1")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Claim b-keys-1")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve 1,840.00 EUR")).to_be_focused()
    assert site.journal.approvals.get(first.id).state == "pending"  # a key presses nothing
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You have approved this")).to_be_focused()
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Claim b-keys-2")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_label("Why", exact=True)).to_be_focused()
    page.keyboard.type("no, as quickly as that")  # keys that are typed go nowhere
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You have rejected this")).to_be_focused()
    assert site.journal.approvals.get(second.id).decision == {"type": "reject", "reason": "no, as quickly as that"}


def test_the_keys_are_listed_and_can_be_turned_off(site: Site, open_page: OpenPage) -> None:
    site.submit("b-off")
    page = open_page()
    log_in(page, site.token("ada", "approver"))
    page.keyboard.press("?")
    expect(page.get_by_text("open or close this list")).to_be_visible()
    page.get_by_label("Use these keys in this browser").uncheck()
    page.reload()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Claim b-off")).not_to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_text("open or close this list")).to_be_hidden()


def test_the_queue_shows_what_comes_by_itself_and_stands_still_under_somebodys_hand(
    site: Site, open_page: OpenPage
) -> None:
    site.submit("b-fresh-1")
    page = open_page()
    page.clock.install()
    log_in(page, site.token("ada", "approver"))
    expect(page.get_by_role("status")).to_have_text("1 waits for you")
    page.get_by_role("link", name="Claim b-fresh-1").focus()
    site.submit("b-fresh-2")
    page.clock.run_for(31_000)
    expect(page.get_by_role("link", name="Claim b-fresh-2")).to_have_count(0)

    page.get_by_role("link", name="Counterfoil").focus()
    page.clock.run_for(31_000)
    expect(page.get_by_role("link", name="Claim b-fresh-2")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("2 wait for you")


def test_a_queue_whose_session_is_over_leads_to_the_login(site: Site, open_page: OpenPage) -> None:
    page = open_page()
    page.clock.install()
    log_in(page, site.token("ada", "approver"))
    site.clock.move(timedelta(hours=13))
    page.clock.run_for(31_000)
    expect(page.get_by_label("Access token")).to_be_visible()


def test_a_decision_whose_session_is_over_leads_to_the_login_and_back(site: Site, open_page: OpenPage) -> None:
    page = open_page()
    asked = opened(site, page, "b-over")
    site.clock.move(timedelta(hours=13))
    page.get_by_role("button", name="Approve").first.click()
    page.get_by_label("Access token").fill(site.token("ada", "approver"))
    page.get_by_role("button", name="Log in").click()

    expect(page.get_by_role("heading", name="Your decision")).to_be_visible()
    assert site.journal.approvals.get(asked.id).state == "pending"


def test_what_a_claimant_wrote_is_text(site: Site, open_page: OpenPage) -> None:
    mark = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"

    def harm(content: dict[str, object]) -> None:
        claim = content["claim"]
        assert isinstance(claim, dict)
        claim["description"] = claim["claimant"]["name"] = mark
        claim["estimate"][0]["description"] = mark

    site.submit("b-harm", change=harm)
    page = open_page()
    log_in(page, site.token("ada", "approver"))
    expect(page.get_by_text(mark)).to_be_visible()
    page.get_by_role("link", name="Claim b-harm").click()
    expect(page.get_by_text(mark).first).to_be_visible()
    page.get_by_role("button", name="Approve").first.click()
    site.go_on("claim-b-harm")
    page.get_by_role("link", name="See the run").click()
    expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    assert page.title() == "claim-b-harm · Counterfoil"
