"""The documents beside an approval: only its own, and never as anything that a browser would run."""

from __future__ import annotations

from tests.inbox.pages import Pages

HARM = b"<script>alert(1)</script>"


def with_document(
    inbox: Pages, content: bytes, media_type: str, name: str = "Photo", *, claim_id: str = "0042"
) -> tuple[str, str]:
    """Ask with a document; return the approval's id and the document's digest."""
    artefact = inbox.journal.artefacts.put(content, name=name, media_type=media_type)
    asked = inbox.ask(claim_id, about={"documents": [artefact.as_json()]})
    return asked.id, artefact.sha256


SERVED = (
    ("image/png", "image/png", "inline"),
    ("image/svg+xml", "image/svg+xml", "inline"),
    ("text/plain", "text/plain; charset=utf-8", "inline"),
    ("text/html", "application/octet-stream", "attachment"),
    ("application/xhtml+xml", "application/octet-stream", "attachment"),
    ("application/pdf", "application/octet-stream", "attachment"),
    ("text/plain; charset=utf-8\r\nSet-Cookie: a=b", "application/octet-stream", "attachment"),
    ("", "application/octet-stream", "attachment"),
)
"""What a document says it is, what it is sent as, and how."""


def test_a_document_is_served_sandboxed_and_as_what_it_may_be(inbox: Pages) -> None:
    visit = inbox.visit("ada", "approver")
    for number, (media_type, served, how) in enumerate(SERVED):
        approval_id, sha256 = with_document(inbox, HARM + bytes([number]), media_type, claim_id=f"{number}")
        visit.get(f"/approvals/{approval_id}/documents/{sha256}")

        assert (visit.status, visit.headers["content-type"]) == (200, served)
        assert visit.headers["content-disposition"].startswith(how)
        assert "sandbox" in visit.headers["content-security-policy"]
        assert "script" not in visit.headers["content-security-policy"]
        assert visit.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in visit.headers


def test_a_name_cannot_make_a_header(inbox: Pages) -> None:
    approval_id, sha256 = with_document(inbox, b"x", "text/plain", 'a"; filename="b.html\r\nX-Evil: 1\u202e.txt')
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{approval_id}/documents/{sha256}")

    assert "x-evil" not in visit.headers
    assert visit.headers["content-disposition"] == (
        "inline; filename*=UTF-8''a%22%3B%20filename%3D%22b.html%0D%0AX-Evil%3A%201%E2%80%AE.txt"
    )


def test_only_what_the_approval_names_is_served_and_only_to_those_who_see_it(inbox: Pages) -> None:
    approval_id, sha256 = with_document(inbox, b"x", "text/plain")
    other = inbox.journal.artefacts.put(b"another claim's", name="Secret", media_type="text/plain")
    ada, carl, clerk = (
        inbox.visit("ada", "approver"),
        inbox.visit("carl", "submitter"),
        inbox.visit("clerk", "submitter"),
    )

    for digest in (other.sha256, "0" * 64, "..%2f..%2fetc%2fpasswd", sha256.upper()):
        ada.get(f"/approvals/{approval_id}/documents/{digest}")
        assert ada.status == 404
    for visit, status in ((ada, 200), (carl, 404), (clerk, 200)):
        visit.get(f"/approvals/{approval_id}/documents/{sha256}")
        assert visit.status == status
    nobody = inbox.browser()
    nobody.get(f"/approvals/{approval_id}/documents/{sha256}")
    assert nobody.address.startswith("/login")


def test_a_text_is_shown_in_the_page_and_a_long_one_in_part(inbox: Pages) -> None:
    approval_id, _ = with_document(inbox, "Grüße <b>".encode() + b"x" * 50_000, "text/plain")
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{approval_id}")

    assert "Grüße &lt;b&gt;x" in visit.last
    assert "x" * 21_000 not in visit.last


def test_a_document_that_the_store_has_not_is_said_so(inbox: Pages) -> None:
    gone = {"sha256": "0" * 64, "name": "Gone", "media_type": "text/plain", "size_bytes": 3}
    asked = inbox.ask(about={"documents": [gone, {"sha256": "../../etc/passwd", "name": "No digest"}, "nothing"]})
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")

    assert "Gone cannot be read" in visit.said
    assert "No digest" not in visit.last
