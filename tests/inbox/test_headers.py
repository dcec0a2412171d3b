"""What is true of every answer, and of every template: no script and no style but our own files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.inbox.pages import Pages

WANTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
}
FOLDER = Path(__file__).parents[2] / "service" / "inbox" / "templates"
TEMPLATES = sorted(FOLDER.glob("*.html"))


def test_every_page_has_the_headers(inbox: Pages) -> None:
    for visit in (inbox.visit("ada", "approver", "operator", "submitter"), inbox.browser()):
        visit.client.follow_redirects = False
        for path in ("/", "/login", "/operate", "/runs", "/approvals/apr_x", "/run?id=x", "/act/redrive?of=x"):
            visit.get(path)

            assert {name: visit.headers.get(name) for name in WANTED} == WANTED, path
            policy = visit.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_holds_a_script_or_a_style(template: Path) -> None:
    text = template.read_text()

    assert re.findall(r"\sstyle=|<style|\son\w+=|javascript:|hx-on|hx-vals=.js|\|\s*safe|autoescape", text) == []
    assert all(' src="{{ asset(' in tag for tag in re.findall(r"<script[^>]*>", text))


def test_our_files_are_kept_by_browsers_under_the_address_of_their_version(inbox: Pages) -> None:
    visit = inbox.browser()
    page = visit.get("/login")
    for name in ("inbox.css", "inbox.js", "htmx.min.js", "icon.svg"):
        address = re.search(rf"/static/{re.escape(name)}\?v=\w+", page)
        assert address is not None

        visit.get(address[0])
        assert (visit.status, "immutable" in visit.headers["cache-control"]) == (200, True)
        assert visit.headers["x-content-type-options"] == "nosniff"
        visit.get(f"/static/{name}?v=another")
        assert visit.headers["cache-control"] == "no-cache"


def test_nothing_else_is_served_as_a_file(inbox: Pages) -> None:
    visit = inbox.browser()
    for path in ("/static/desk.py", "/static/..%2fdesk.py", "/static/%2e%2e/desk.py"):
        visit.get(path)
        assert visit.status == 404, path
