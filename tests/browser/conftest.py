"""A browser for these tests, and the pages served over a journal of each test's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.site import Site, served
from tools.sandbox import SandboxProcess

CHROMIUM = Path("/usr/bin/chromium")
WIDE = {"width": 1200, "height": 900}
PHONE = {"width": 390, "height": 844}


# A package's fixture and no session's: while Playwright is at work no other test of this process could run an event loop of its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; where there is none there is nothing to test, and continuous integration says so in red."""
    if not CHROMIUM.exists() and not os.environ.get("CI"):
        pytest.skip(f"no {CHROMIUM} here")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield opened
        opened.close()


@pytest.fixture
def site(sandbox: SandboxProcess, tmp_path: Path) -> Iterator[Site]:
    """The pages over an empty journal."""
    with served(tmp_path, sandbox.url) as opened:
        yield opened


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[OpenPage]:
    """Opens a browser of somebody's own at the first page; what a page's console complains of fails the test at its end."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_it(*, phone: bool = False, dark: bool = False, script: bool = True) -> Page:
        context = browser.new_context(
            viewport=PHONE if phone else WIDE,  # type: ignore[arg-type]  # a dict is what Playwright reads
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            base_url=site.url,
            locale="en-GB",
            timezone_id="UTC",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None
        )
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []
