"""The pages: nobody else's page acts for a visitor, no text is markup, no stale page decides, and no document is run."""

from __future__ import annotations

from tests.mutations.workshop import Mutation

CSRF = "service/inbox/csrf.py"
COOKIES = "service/inbox/cookies.py"
DESK = "service/inbox/desk.py"
GUARD = "service/inbox/guard.py"
DOCUMENTS = "service/inbox/documents.py"
DECIDING = "service/inbox/deciding.py"
ACTING = "service/inbox/acting.py"
FIELDS = "service/inbox/forms.py"

OTHERS = "tests/inbox/test_forms_of_others.py::"
COMING_IN = "tests/inbox/test_coming_in.py::"
ON_PAGES = "tests/inbox/test_deciding.py::"
SERVED = "tests/inbox/test_documents.py::"

PAGES = (
    Mutation(
        "a form has the token of its page",
        CSRF,
        "not secret or not hmac.compare_digest(token(secret, name).encode(), given.encode())",
        "not secret",
        (OTHERS + "test_the_token_of_somebody_elses_page_is_of_no_use[sqlite]",),
        "A page that can make a browser send a form decides in its visitor's name.",
    ),
    Mutation(
        "a form's token is of its session",
        CSRF,
        "hmac.new(secret.encode()",
        'hmac.new(b"the same for all"',
        (OTHERS + "test_the_token_of_a_session_that_is_over_is_of_no_use[sqlite]",),
        "A token that was seen once is good for ever.",
    ),
    Mutation(
        "a form comes from one of our pages",
        CSRF,
        "if not _is_from_here(headers):",
        "if headers is None:",
        (OTHERS + "test_a_form_of_another_page_is_refused_and_changes_nothing[sqlite-/approvals/{approval_id}]",),
        "A token that leaks is enough for another site's page.",
    ),
    Mutation(
        "texts are escaped",
        DESK,
        "autoescape=True",
        "autoescape=False",
        ("tests/inbox/test_shown_as_text.py::test_texts_from_outside_are_shown_as_text_on_every_page[sqlite]",),
        "A claimant's text is a part of the page.",
    ),
    Mutation(
        "a role opens a page",
        DESK,
        "if roles and not found.may(*roles):",
        "if roles and found is None:",
        ("tests/inbox/test_roles.py::test_every_role_on_every_page[sqlite]",),
        "Whoever is logged in is an operator.",
    ),
    Mutation(
        "pages allow no script but our own",
        GUARD,
        "script-src 'self'",
        "script-src 'self' 'unsafe-inline'",
        ("tests/inbox/test_headers.py::test_every_page_has_the_headers[sqlite]",),
        "Markup that got into a page runs.",
    ),
    Mutation(
        "a login leads to our own pages",
        GUARD,
        'return path if is_ours else "/"',
        "return path if is_ours else path",
        (COMING_IN + "test_a_login_sends_nobody_elsewhere[sqlite]",),
        "A link to our login ends on somebody else's page that looks like ours.",
    ),
    Mutation(
        "the session's cookie is for TLS",
        COOKIES,
        'request.url.scheme == "https" or',
        'request.url.scheme == "https" and',
        (COMING_IN + "test_the_session_cookie_is_for_no_script_and_for_tls_but_on_this_very_machine[sqlite]",),
        "A session goes over the wire in the clear.",
    ),
    Mutation(
        "a form decides about the payload that it showed",
        DECIDING,
        '"payload_hash": typed.shown_hash}',
        '"payload_hash": approval.payload_hash}',
        (ON_PAGES + "test_a_form_for_another_payload_is_refused[sqlite]",),
        "What somebody approves is not what they saw.",
    ),
    Mutation(
        "a reject takes a reason",
        DECIDING,
        'case "reject" if not reason:',
        'case "reject" if reason is None:',
        (ON_PAGES + "test_a_reject_takes_a_reason[sqlite]",),
        "A claimant is rejected, and nobody knows why.",
    ),
    Mutation(
        "an act takes a reason",
        ACTING,
        'act.reason == "must" and not reason',
        'act.reason == "must" and reason is None',
        ("tests/inbox/test_acts.py::test_a_dead_letter_is_redriven_with_a_reason[sqlite]",),
        "The record does not say why a run was taken up again.",
    ),
    Mutation(
        "only an approval's own documents are served",
        DOCUMENTS,
        'if one["sha256"] == sha256',
        'if one["sha256"] != ""',
        (SERVED + "test_only_what_the_approval_names_is_served_and_only_to_those_who_see_it[sqlite]",),
        "Whoever sees one claim reads every claim's documents.",
    ),
    Mutation(
        "a document is sandboxed",
        DOCUMENTS,
        "img-src data:; sandbox;",
        "img-src data:;",
        (SERVED + "test_a_document_is_served_sandboxed_and_as_what_it_may_be[sqlite]",),
        "A picture that is a program runs as one of our pages.",
    ),
    Mutation(
        "a document is what it may be, not what it says",
        DOCUMENTS,
        'else "application/octet-stream"',
        "else media_type",
        (SERVED + "test_a_document_is_served_sandboxed_and_as_what_it_may_be[sqlite]",),
        "A claimant's web page is shown as one of ours.",
    ),
    Mutation(
        "what is fixed is not read from the form",
        FIELDS,
        'if "const" in schema:',
        'if "const" in schema and money is None:',
        ("tests/inbox/test_fields.py::test_a_fixed_value_stays_whatever_is_sent",),
        "A form names another payee.",
    ),
    Mutation(
        "an amount has no more decimals than its currency",
        FIELDS,
        "if len(rest) > places:",
        "if len(rest) > 99:",
        ("tests/inbox/test_fields.py::test_what_is_no_amount_for_certain_is_not_guessed",),
        "1840.505 is paid as a hundred times as much.",
    ),
)
