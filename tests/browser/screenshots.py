"""
The pictures of the pages in the documentation, made from the scenes that the tests look at: `python -m tests.browser.screenshots`.

The clock stands where the scene leaves it, and nobody else's data is in it, so that a picture changes where the pages do.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.acts import log_in
from tests.browser.conftest import CHROMIUM, PHONE
from tests.browser.scenes import Scene, TickingClock, one_clock, play
from tests.browser.site import Site, served
from tools.sandbox import SandboxProcess

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SCREEN = {"width": 1120, "height": 760}


def main(folder: Path = IMAGES) -> None:
    """Make them all in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = TickingClock()
    with (
        tempfile.TemporaryDirectory() as place,
        SandboxProcess(Path(place) / "sandbox.db") as sandbox,
        served(Path(place), sandbox.url, clock=clock) as site,
        one_clock(clock),
    ):
        scene = play(site, sandbox.control)
        with sync_playwright() as playwright:
            options = ["--no-sandbox"] if os.getuid() == 0 else []
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=[*options, "--hide-scrollbars"],
            )
            _take(browser, site, scene, folder)
            browser.close()


def _take(browser: Browser, site: Site, scene: Scene, folder: Path) -> None:
    def shot(page: Page, name: str, *, whole: bool = False) -> None:
        page.evaluate("document.fonts.ready")
        page.screenshot(path=folder / f"inbox-{name}.png", full_page=whole, animations="disabled")

    adjuster = site.token("ada.lindqvist", "approver")
    operator = site.token("olga.brandt", "operator")
    page = _opened(browser, site, adjuster)
    shot(page, "queue")
    page.goto(f"/approvals/{scene.waiting}")
    page.set_viewport_size({**SCREEN, "height": 1180})  # type: ignore[typeddict-item]
    shot(page, "approval")
    page.set_viewport_size(SCREEN)  # type: ignore[arg-type]  # a dict is what Playwright reads
    page.get_by_text("Change it, then approve").click()
    page.get_by_label("Amount in EUR").fill("1790.00")
    page.get_by_label("Why (optional, recorded)").fill("The garage gave a discount of 50.00.")
    shot(page, "edit")
    page.goto(f"/approvals/{scene.changed}")
    shot(page, "changed")
    _faster(page, site, scene, lambda: shot(page, "faster"))
    page = _opened(browser, site, operator)
    shot(page, "operator", whole=True)
    page.goto(f"/run?id={scene.done}")
    shot(page, "run", whole=True)
    page = _opened(browser, site, adjuster, phone=True)
    page.goto(f"/approvals/{scene.waiting}")
    shot(page, "phone")
    page = _opened(browser, site, adjuster, dark=True)
    page.goto(f"/approvals/{scene.waiting}")
    shot(page, "dark")


def _faster(page: Page, site: Site, scene: Scene, shot: Callable[[], None]) -> None:
    page.goto(f"/approvals/{scene.taken}")
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why", exact=True).fill("The barrier's owner has not answered yet.")
    site.journal.approvals.decide(scene.taken, {"type": "approve"}, principal="ben.okafor")
    site.clock.move(timedelta(minutes=2))
    page.get_by_role("button", name="Reject").click()
    page.get_by_role("heading", name="ben.okafor was faster").wait_for()
    shot()


def _opened(browser: Browser, site: Site, token: str, *, phone: bool = False, dark: bool = False) -> Page:
    context = browser.new_context(
        viewport=PHONE if phone else SCREEN,  # type: ignore[arg-type]  # a dict is what Playwright reads
        color_scheme="dark" if dark else "light",
        base_url=site.url,
        locale="en-GB",
        timezone_id="UTC",
    )
    page = context.new_page()
    log_in(page, token)
    return page


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
