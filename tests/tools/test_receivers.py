"""What is done about a doubtful call, for every receiver we know: by its key while that lives, else by its look-up, else by a person."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tools.messages import notify_effect
from tools.payments import pay_effect
from tools.receiver import Move, Receiver, next_move
from tools.receivers import (
    JIRA,
    JIRA_CLOUD,
    KNOWN,
    PLAIN_SMTP,
    QONTO,
    RESEND,
    RESEND_MAIL,
    SLACK,
    SLACK_CHAT,
    SMTP,
    STRIPE,
    STRIPE_V1,
    WORLDLINE_DIRECT,
    ZENDESK,
    ZENDESK_TICKETS,
    Known,
)

REPEATABLE = Receiver(repeatable=True)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)

# The receiver, the age of the claim, and the move with and without a look-up.
MOVES: list[tuple[str, Receiver, timedelta, Move, Move]] = [
    ("Stripe, young key", STRIPE, 22 * HOUR - SECOND, "call", "call"),
    ("Stripe, key in its last hours", STRIPE, 22 * HOUR, "look_up_or_person", "person"),
    ("Stripe, expired key", STRIPE, 24 * HOUR, "look_up_or_person", "person"),
    ("Stripe, key of last year", STRIPE, 9000 * HOUR, "look_up_or_person", "person"),
    ("Resend, young key", RESEND, 22 * HOUR - SECOND, "call", "call"),
    ("Resend, expired key", RESEND, 22 * HOUR, "look_up_or_person", "person"),
    ("Zendesk, young key", ZENDESK, 110 * MINUTE - SECOND, "call", "call"),
    ("Zendesk, expired key", ZENDESK, 110 * MINUTE, "look_up_or_person", "person"),
    ("Zendesk without keys", ZENDESK_TICKETS.without_keys, timedelta(0), "look_up_or_call", "person"),
    ("Zendesk without keys, later", ZENDESK_TICKETS.without_keys, 9000 * HOUR, "look_up_or_call", "person"),
    ("Slack", SLACK, timedelta(0), "look_up_or_call", "person"),
    ("Slack, later", SLACK, 9000 * HOUR, "look_up_or_call", "person"),
    ("Jira", JIRA, timedelta(0), "look_up_or_call", "person"),
    ("Jira, later", JIRA, 9000 * HOUR, "look_up_or_call", "person"),
    ("SMTP", SMTP, timedelta(0), "look_up_or_call", "person"),
    ("SMTP, later", SMTP, 9000 * HOUR, "look_up_or_call", "person"),
    ("Qonto, young key", QONTO.profile, 27 * MINUTE, "call", "call"),
    ("Qonto, expired key", QONTO.profile, 28 * MINUTE, "look_up_or_person", "person"),
    ("Worldline, young key", WORLDLINE_DIRECT.profile, 22 * HOUR - SECOND, "call", "call"),
    ("Worldline, expired key", WORLDLINE_DIRECT.profile, 22 * HOUR, "look_up_or_person", "person"),
    ("a key for ever", Receiver(honours_keys=True), 9000 * HOUR, "call", "call"),
    ("harmless to repeat", REPEATABLE, timedelta(0), "call", "call"),
    ("harmless to repeat, later", REPEATABLE, 9000 * HOUR, "call", "call"),
]


@pytest.mark.parametrize(
    ("receiver", "age", "with_look_up", "without"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES]
)
def test_the_move(receiver: Receiver, age: timedelta, with_look_up: Move, without: Move) -> None:
    assert next_move(receiver, age=age, has_lookup=True) == with_look_up
    assert next_move(receiver, age=age, has_lookup=False) == without


def test_every_receiver_is_in_the_table() -> None:
    tried = [row[1] for row in MOVES]

    assert [known.name for known in KNOWN if known.profile not in tried] == []
    assert {STRIPE_V1, RESEND_MAIL, ZENDESK_TICKETS, SLACK_CHAT, JIRA_CLOUD, PLAIN_SMTP} < set(KNOWN)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_key_is_never_sent_when_its_life_may_be_over(known: Known) -> None:
    """The last call leaves when the profile's life ends, is under way for a timeout, and must arrive within the promise."""
    profile = known.profile
    if not profile.honours_keys:
        assert known.key_in is None
        return

    assert known.key_life is not None
    assert profile.key_life is not None
    assert profile.key_life + timedelta(seconds=60) < known.key_life
    assert profile.max_key_length <= (known.longest_key or 255)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_without_keys_the_key_is_not_counted_on(known: Known) -> None:
    assert not known.without_keys.honours_keys
    assert known.without_keys.settle_delay == known.shows_after


def test_the_effects_have_the_profile_of_their_receiver() -> None:
    assert pay_effect(api_key="sk_test_1").receiver is STRIPE
    assert notify_effect(api_key="re_1", sender="a@b.example").receiver is RESEND


def test_the_page_says_of_each_receiver_what_the_data_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "receivers.md").read_text()

    for known in KNOWN:
        assert _row(known) in page, f"docs/receivers.md has another line than: {_row(known)}"


def _row(known: Known) -> str:
    said = {None: "", True: "yes", False: "no"}
    cells = [
        f"[{known.name}]({known.source})",
        f"`{known.key_in}`" if known.key_in else "none",
        str(known.longest_key or ""),
        _time(known.key_life),
        _time(known.profile.key_life),
        known.changed_payload or "",
        said[known.stores_errors],
        known.look_up or "none",
    ]
    return f"| {' | '.join(cells)} |"


def _time(life: timedelta | None) -> str:
    if life is None:
        return ""
    minutes = life / MINUTE
    return f"{minutes / 60:g} h" if minutes % 60 == 0 else f"{minutes:g} min"
