"""Whatever a claimant, a model, a receiver or a colleague wrote is shown as text, on every page that shows it."""

from __future__ import annotations

from contextlib import suppress
from html.parser import HTMLParser

import pytest

from checkpointing.errors import CounterfoilError
from graph import approve, thread
from tests.inbox.pages import Pages
from tests.support.bank import Bank

MARKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "</textarea></pre></title><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
)


class Tags(HTMLParser):
    """Collects what a page has that none of ours has: scripts, handlers, and addresses that are none."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "object") and not str(given.get("src", "")).startswith(
            ("/static/", "/approvals/")
        ):
            self.wrong.append(f"<{tag} {given}>")
        for name, value in given.items():
            scheme = str(value).strip().lower().startswith(("javascript:", "data:"))
            if name.startswith("on") or name == "style" or (name in ("href", "action", "src") and scheme):
                self.wrong.append(f"{tag} {name}={value}")


def wrong_in(page: str) -> list[str]:
    tags = Tags()
    tags.feed(page)
    return tags.wrong


def test_texts_from_outside_are_shown_as_text_on_every_page(inbox: Pages) -> None:
    for mark in MARKS:
        look_everywhere(inbox, mark)


def look_everywhere(inbox: Pages, mark: str) -> None:
    """Have *mark* stand wherever somebody may write something, and look at every page that shows it."""
    file = inbox.journal.artefacts.put(mark.encode(), name=mark, media_type="text/plain")
    about = {
        "title": mark,
        "why": mark,
        "said": [mark],
        "facts": {mark: mark},
        "documents": [
            file.as_json(),
            {**file.as_json(), "media_type": mark},
            {**file.as_json(), "media_type": "image/png"},
        ],
    }
    asked = inbox.ask(mark, about=about, by=mark)
    visit = inbox.visit("ada", "approver", "operator", "auditor", "submitter")
    pages = {
        path: visit.get(path) for path in ("/", f"/approvals/{asked.id}", "/operate", f"/act/extend?of={asked.id}")
    }
    assert mark in visit.said

    visit.post("/act/reassign", of=asked.id, people="ben, ada", reason=mark)
    visit.get(f"/approvals/{asked.id}")
    pages["wrong"] = visit.post(
        f"/approvals/{asked.id}",
        {"field.1": mark, "field.6": mark},
        type="edit",
        payload_hash=asked.payload_hash,
        reason=mark,
    )
    inbox.decide(asked, "reject", by="ben", reason=mark)
    pages["slower"] = visit.post(f"/approvals/{asked.id}", type="reject", payload_hash=asked.payload_hash, reason=mark)
    assert visit.status == 409
    inbox.graph.invoke(None, thread(asked.thread_id))
    pages["run"] = visit.client.get("/run", params={"id": asked.thread_id}).text
    pages["login"] = inbox.browser().client.get("/login", params={"next": "/" + mark}).text
    pages["filter"] = visit.client.get("/", params={"name": mark, "least": mark, "after": mark, "show": "all"}).text

    assert {path: wrong_in(page) for path, page in pages.items() if wrong_in(page)} == {}
    assert "49" not in visit.said


def test_an_error_is_shown_as_text(inbox: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = inbox.ask()

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError(MARKS[1])

    monkeypatch.setattr(Bank, "execute", refuse)
    for _ in range(5):
        with suppress(CounterfoilError, RuntimeError):
            given = approve(asked) if inbox.journal.approvals.get(asked.id).state == "pending" else None
            inbox.graph.invoke(given, thread(asked.thread_id, principal="ben"))
    assert inbox.journal.runs.get(asked.thread_id).state == "dead"
    visit = inbox.visit("olga", "operator")
    pages = [
        visit.get(path) for path in ("/operate", f"/run?id={asked.thread_id}", f"/act/redrive?of={asked.thread_id}")
    ]

    assert [wrong_in(page) for page in pages] == [[], [], []]
    assert all("&lt;img src=x onerror=" in page for page in pages)
