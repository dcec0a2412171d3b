"""An operator at work: they see what is in trouble, and do something about it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from service.submission import accept, read_submission
from tests.browser.acts import log_in
from tests.browser.conftest import OpenPage
from tests.browser.site import Site
from tools.sandbox import SandboxControl


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
def test_an_operator_redrives_a_dead_letter(site: Site, open_page: OpenPage, *, script: bool) -> None:
    claim_id = f"b-redrive-{script:d}"
    thread_id = site.kill_one(claim_id)
    page = open_page(script=script)
    log_in(page, site.token("olga", "operator"))
    expect(page.get_by_text(f"there is no claim '{claim_id}'")).to_be_visible()
    accept(site.app, read_submission(site.file(claim_id)), thread_id)  # the cause is mended

    page.get_by_role("link", name=f"Redrive {thread_id}").click()
    expect(page.get_by_text("No effect is repeated.")).to_be_visible()
    page.get_by_role("button", name="Redrive").click()
    expect(page.get_by_role("alert").filter(has_text="Say why")).to_be_visible()
    page.get_by_label("Why").fill("The claim is filed now.")
    page.get_by_role("button", name="Redrive").click()

    expect(page.get_by_text("ready", exact=True)).to_be_visible()
    site.go_on(thread_id)
    assert site.journal.runs.get(thread_id).state == "parked"
    page.goto("/operate")
    expect(page.get_by_role("link", name=f"Claim {claim_id}")).to_be_visible()


def test_an_operator_says_what_became_of_an_effect(site: Site, open_page: OpenPage, control: SandboxControl) -> None:
    thread_id = site.doubt_one("b-doubt", control)
    page = open_page()
    log_in(page, site.token("olga", "operator"))
    page.get_by_role("link", name="Say what became of it").click()
    page.get_by_label("No, nothing happened").check()
    page.get_by_role("button", name="Record it").click()

    expect(page.get_by_role("heading", name=thread_id)).to_be_visible()
    site.go_on(thread_id)
    assert site.journal.runs.get(thread_id).state == "done"
    assert len(control.messages("b-doubt")) == 1


def test_an_operator_asks_other_people(site: Site, open_page: OpenPage) -> None:
    asked = site.pending(site.submit("b-others"))
    page = open_page()
    log_in(page, site.token("olga", "operator"))
    page.get_by_role("link", name="Ask others").click()
    page.get_by_label("Who is asked instead").fill("group:seniors")
    page.get_by_role("button", name="Ask them").click()

    expect(page.get_by_text("the group seniors")).to_be_visible()
    assert site.journal.approvals.get(asked.id).approvers == ("group:seniors",)
