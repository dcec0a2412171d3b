"""Every page for everybody: axe-core finds nothing wrong, in light and dark, on a wide screen and on a phone, and nothing is wider than the phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.acts import log_in
from tests.browser.conftest import OpenPage
from tests.browser.scenes import Scene, TickingClock, one_clock, play
from tests.browser.site import Site, served
from tools.sandbox import SandboxControl, SandboxProcess

ROLES = ("approver", "operator", "auditor", "submitter")


@pytest.fixture(scope="module")
def day(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Scene]]:
    """Everything that may be seen, once for all these tests, which only look."""
    clock = TickingClock()
    with served(tmp_path_factory.mktemp("day"), sandbox.url, clock=clock) as site, one_clock(clock):
        control: SandboxControl = sandbox.control
        yield site, play(site, control, prefix="axe-")


@pytest.fixture
def site(day: tuple[Site, Scene]) -> Site:
    """The site of that day, for `open_page`."""
    return day[0]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_axe_finds_nothing_on_any_page(
    day: tuple[Site, Scene], open_page: OpenPage, *, phone: bool, dark: bool
) -> None:
    site, scene = day
    page = open_page(phone=phone, dark=dark)
    page.goto("/login")
    found = {"login": wrong_with(page)}
    log_in(page, site.token("ada.lindqvist", *ROLES))
    for name, path in scene.pages.items():
        page.goto(path)
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true }")
        found[name] = wrong_with(page)

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def wrong_with(page: Page) -> list[str]:
    """Return what is wrong with the page: what axe says, and whether it is wider than its window."""
    page.evaluate("Promise.all(document.getAnimations().map(one => one.finished))")  # colours under way are nobody's
    result = Axe().run(page)
    wrong = [f"{one['id']}: {node['html'][:200]}" for one in result.response["violations"] for node in one["nodes"]]
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wrong + ([f"wider than the window by {wide} pixels"] if wide > 0 else [])


def test_no_motion_where_somebody_wants_none(day: tuple[Site, Scene], open_page: OpenPage) -> None:
    page = open_page()
    page.emulate_media(reduced_motion="reduce")
    page.goto("/login")
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(one => parseFloat(getComputedStyle(one).transitionDuration) > 0).length"
    )
    assert moving == 0


def test_every_page_has_one_heading_of_the_first_rank_and_a_title_of_its_own(
    day: tuple[Site, Scene], open_page: OpenPage
) -> None:
    site, scene = day
    page = open_page()
    log_in(page, site.token("ada.lindqvist", *ROLES))
    for path in scene.pages.values():
        page.goto(path)
        assert page.locator("h1").count() == 1, path
        assert page.title() not in ("", "Counterfoil"), path
