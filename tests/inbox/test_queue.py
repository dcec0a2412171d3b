"""The queue: what ends first in front, a page at a time, and as one asks for it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from service.inbox import queue
from tests.inbox.pages import Pages
from tests.support.clock import MovingClock


def titles(page: str) -> list[str]:
    return re.findall(r'id="go-apr_\w+">Payout for claim-(\w+)</a>', page)


def test_what_ends_first_stands_in_front_with_its_time_in_words(inbox: Pages, clock: MovingClock) -> None:
    for number in range(3):
        inbox.ask(f"{number}")
        clock.move(timedelta(hours=20))
    page = inbox.visit("ada", "approver").get("/")

    assert titles(page) == ["0", "1", "2"]
    assert re.findall(r'class="chip (\w+)">([^<]*)<', page.partition("<main")[2]) == [
        ("today", "12 hours left"),
        ("later", "1 day 8 hours left"),
        ("later", "2 days 4 hours left"),
    ]
    assert "3 wait for you" in page


def test_the_queue_comes_in_pages_and_what_is_decided_meanwhile_is_not_shown_twice(
    inbox: Pages, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PAGE", 2)
    asked = []
    for number in range(5):
        asked.append(inbox.ask(f"{number}"))
        clock.move(timedelta(minutes=1))
    visit = inbox.visit("ada", "approver")
    seen = titles(visit.get("/"))
    inbox.decide(asked[0])
    while further := re.search(r'href="([^"]+)">Further<', visit.last):
        seen += titles(visit.get(further[1].replace("&amp;", "&")))

    assert seen == ["0", "1", "2", "3", "4"]
    assert "To the front" in visit.last


def test_the_queue_is_filtered_by_kind_and_amount(inbox: Pages) -> None:
    for number, amount in enumerate((100_000, 200_000, 300_000)):
        inbox.ask(f"{number}", amount=amount)
    visit = inbox.visit("ada", "approver")

    assert titles(visit.get("/?least=1500&most=2,500.00")) == ["1"]
    assert sorted(titles(visit.get("/?name=payout"))) == ["0", "1", "2"]
    assert "Nothing that waits fits this filter" in visit.get("/?name=refund")
    visit.get("/?least=lots")
    assert (visit.status, "Write amounts as numbers" in visit.said, 'value="lots"' in visit.last) == (422, True, True)


def test_an_address_that_was_changed_begins_at_the_front(inbox: Pages) -> None:
    inbox.ask("0")
    visit = inbox.visit("ada", "approver")
    for after in ("", "x", "1", "1.", "99999999999999999999.apr_1", "1.apr_1;drop", "-1.\0"):
        assert titles(visit.client.get("/", params={"after": after}).text) == ["0"], after


def test_what_waits_for_others_is_there_to_look_at(inbox: Pages) -> None:
    inbox.ask("0")
    inbox.ask("1", by="ada")
    visit = inbox.visit("ada", "approver")

    assert titles(visit.get("/")) == ["0"]
    assert sorted(titles(visit.get("/?show=all"))) == ["0", "1"]
    assert "You submitted this yourself" in visit.last


def test_the_queue_asks_for_itself_and_says_how_many(inbox: Pages) -> None:
    visit = inbox.visit("ada", "approver")
    assert 'hx-get="/" hx-select="#queue"' in visit.get("/")
    assert 'role="status" id="queue-said">0 wait for you<' in visit.last
    assert "Nothing waits for you." in visit.said
