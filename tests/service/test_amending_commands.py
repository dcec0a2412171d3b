"""More time, other people, several of them and their groups, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.service.conftest import Cli, Filed, approval_of

Make = Callable[..., Filed]
OPERATOR = ("--as", "operator-3")
LADDER = [
    {"name": "adjusters", "approvers": ["group:adjusters"], "hours": 72, "up_to": 500_000, "quorum": 2},
    {"name": "seniors", "approvers": ["group:seniors"], "hours": 48},
]
TIERS = {"COUNTERFOIL_APPROVAL_TIERS": json.dumps(LADDER)}


def test_a_question_gets_more_time(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    asked = approval_of(cli, claim)
    before = cli("approvals", "--json").document[0]["expires_at"]

    said = cli("extend", asked, "--hours", "24", *OPERATOR, "--reason", "on leave")

    assert said.stdout.startswith("Recorded: operator-3 gave it 24 hours more.\n")
    assert cli("approvals", "--json").document[0]["expires_at"] > before
    assert "approval.extend" in cli("audit", "show", claim.thread_id).stdout
    assert cli("extend", asked, "--hours", "0", *OPERATOR, code=2).line.startswith("counterfoil: --hours takes")
    assert "needs --as" in cli("extend", asked, "--hours", "1", code=2).line
    assert cli("extend", "apr_0", "--hours", "1", *OPERATOR, code=2).line.startswith(
        "counterfoil: there is no approval"
    )


def test_other_people_are_asked(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    asked = approval_of(cli, claim)

    said = cli("reassign", asked, "--to", "group:seniors", "--to", "ben", *OPERATOR)
    assert said.stdout.startswith("Recorded: operator-3 has group:seniors, ben asked.\n")
    assert "may not decide" in cli("approve", asked, "--as", "ann", code=3).line
    assert f"{claim.thread_id} is done" in cli("approve", asked, "--as", "sue", "--group", "seniors").stdout

    assert "decided already" in cli("reassign", asked, "--to", "ann", *OPERATOR, code=3).line


def test_two_of_a_group_approve(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit, **TIERS)
    asked = approval_of(cli, claim)
    assert "2 of adjusters" in cli("approvals", **TIERS).stdout
    assert (
        "payout: waits for a decision of 2 of adjusters" in cli("show", claim.thread_id, **TIERS, COLUMNS="300").stdout
    )
    first = cli("approve", asked, "--as", "ann", "--group", "adjusters", **TIERS)
    again = cli("approve", asked, "--as", "ann", "--group", "adjusters", **TIERS)

    assert first.stdout.startswith("Recorded: approve by ann. It is decided when enough of them say the same.\n")
    assert f"{claim.thread_id} is parked" in again.stdout
    second = cli("approve", asked, "--as", "ben", "--group", "adjusters", **TIERS)
    assert f"{claim.thread_id} is done" in second.stdout
    assert [e["state"] for e in cli("effects", claim.thread_id, "--json").document if e["effect"] == "pay"] == [
        "settled"
    ]


def test_a_member_of_a_group_changes_a_question_as_one_who_may_decide_it(cli: Cli, filed: Make) -> None:
    """And so decides it afterwards, which an operator who chose who decides may not."""
    claim = filed()
    cli(*claim.submit, **TIERS)
    asked, ann = approval_of(cli, claim), ("--as", "ann", "--group", "adjusters")
    cli("reassign", asked, "--to", "ann", "--to", "group:adjusters", *ann)
    cli("extend", asked, "--hours", "1", *ann)
    assert (
        "waits for a decision of 2 of ann, group:adjusters"
        in cli("show", claim.thread_id, **TIERS, COLUMNS="300").stdout
    )

    assert cli("approve", asked, *ann).stdout.startswith("Recorded: approve by ann.")
    assert cli("withdraw", asked, *ann).stdout.startswith("Recorded: withdrawn by ann.")


def test_a_ladder_that_has_no_end_is_a_wrong_setting(cli: Cli) -> None:
    for ladder in ("{", "[]x", "[{}]", json.dumps(LADDER[:1]), json.dumps([{**LADDER[1], "colour": 1}])):
        said = cli("list", code=2, COUNTERFOIL_APPROVAL_TIERS=ladder)
        assert "COUNTERFOIL_APPROVAL_TIERS" in said.line
