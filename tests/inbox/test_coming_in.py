"""Logging in and out: by a token, under a session of one's own, and nobody by trying."""

from __future__ import annotations

from datetime import timedelta

from checkpointing.logins import FREE
from tests.inbox.pages import Pages
from tests.support.clock import MovingClock


def test_whoever_is_not_logged_in_is_sent_to_the_login_and_from_there_to_the_page_they_wanted(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.browser()

    visit.get(f"/approvals/{asked.id}")
    assert visit.address == f"/login?next=%2Fapprovals%2F{asked.id}"
    visit.post("/login", token=inbox.token("ada", "approver"), next=f"/approvals/{asked.id}")
    assert visit.address == f"/approvals/{asked.id}"
    assert "Logged in as" in visit.last


def test_a_token_that_lets_nobody_in_is_said_so_and_not_repeated(inbox: Pages) -> None:
    visit = inbox.browser()
    visit.get("/login")
    visit.post("/login", token="cft_nobody-has-this")  # noqa: S106  # it is nobody's

    assert visit.status == 401
    assert "This token lets nobody in" in visit.said
    assert "nobody-has-this" not in visit.last


def test_whoever_fails_again_and_again_waits(inbox: Pages, clock: MovingClock) -> None:
    visit = inbox.browser()
    visit.get("/login")
    for _ in range(FREE):
        visit.post("/login", token="wrong")  # noqa: S106  # it is nobody's
        assert visit.status == 401
    visit.post("/login", token=inbox.token("ada", "approver"))
    assert (visit.status, "Too many attempts from here" in visit.said) == (429, True)

    clock.move(timedelta(seconds=2))
    visit.post("/login", token=inbox.token("ada", "approver"))
    assert visit.address == "/"


def test_a_login_sends_nobody_elsewhere(inbox: Pages) -> None:
    token = inbox.token("ada", "approver")
    for elsewhere in ("//evil.example", "https://evil.example/", "/\\evil.example", "evil", "/\t/evil"):
        visit = inbox.browser()
        visit.client.follow_redirects = False
        visit.get("/login")
        visit.post("/login", token=token, next=elsewhere)

        assert (visit.status, visit.headers["location"]) == (303, "/"), elsewhere


def test_the_session_cookie_is_for_no_script_and_for_tls_but_on_this_very_machine(inbox: Pages) -> None:
    token = inbox.token("ada", "approver")
    for at, secure in (("http://127.0.0.1:8000", False), ("http://inbox.example", True), ("https://127.0.0.1", True)):
        visit = inbox.browser(at)
        visit.client.follow_redirects = False
        visit.get("/login")
        form_cookie = visit.headers["set-cookie"]
        headers = {"Sec-Fetch-Site": "same-origin", "Cookie": form_cookie.partition(";")[0]}
        made = visit.client.post("/login", data={"csrf": visit.csrf, "token": token}, headers=headers)

        cookie = made.headers["set-cookie"]
        assert cookie.startswith("counterfoil_session=")
        for one in (cookie, form_cookie):
            assert ("HttpOnly" in one, "SameSite=lax" in one, "Secure" in one) == (True, True, secure), at


def test_every_login_begins_a_session_of_its_own(inbox: Pages) -> None:
    visit = inbox.browser()
    visit.client.cookies.set("counterfoil_session", "planted-by-somebody", domain="127.0.0.1")
    visit.get("/login")
    visit.post("/login", token=inbox.token("ada", "approver"))

    [session] = [cookie.value for cookie in visit.client.cookies.jar if cookie.name == "counterfoil_session"]
    assert session != "planted-by-somebody"
    assert session is not None
    assert inbox.journal.sessions.find(session) is not None


def test_a_logout_ends_the_session_for_everybody_who_has_its_cookie(inbox: Pages) -> None:
    visit, thief = inbox.visit("ada", "approver"), inbox.browser()
    thief.client.cookies.update(visit.client.cookies)
    assert "Waiting for you" in thief.get("/")

    visit.post("/logout")
    assert visit.address == "/login"
    thief.get("/")
    assert thief.address == "/login"


def test_a_revoked_token_ends_its_sessions(inbox: Pages) -> None:
    visit = inbox.visit("ada", "approver")
    [token] = inbox.journal.tokens.list()
    inbox.journal.tokens.revoke(token.id, by="olga")

    visit.get("/")
    assert visit.address == "/login"
