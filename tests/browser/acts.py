"""What people do on the pages, in their words."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def log_in(page: Page, token: str, *, at: str = "/") -> None:
    """Log in by a token, on the way to the page *at*."""
    page.goto(at)
    page.get_by_label("Access token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
