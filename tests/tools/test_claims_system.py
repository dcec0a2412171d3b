"""The client of the claims system, against the sandbox's."""

from __future__ import annotations

import socket
from collections.abc import Callable

import httpx
import pytest

from checkpointing.errors import Rejected, Unreachable
from tools.claim_models import Claim, EstimateLine, Policy
from tools.claims_system import ClaimFiledOtherwise, ClaimsSystem, UnknownClaim, UnknownPolicy
from tools.sandbox import SandboxControl, SandboxProcess


@pytest.fixture
def system(sandbox: SandboxProcess) -> ClaimsSystem:
    return ClaimsSystem(sandbox.url, timeout_s=10)


def test_a_filed_claim_is_read_back_as_it_was(system: ClaimsSystem, claim: Claim, policy: Policy) -> None:
    assert system.file(claim, policy, reference="r-1") == claim
    assert (system.claim(claim.id), system.policy(policy.number)) == (claim, policy)


def test_filing_twice_is_filing_once(
    system: ClaimsSystem, control: SandboxControl, claim: Claim, policy: Policy
) -> None:
    for _ in range(2):
        assert system.file(claim, policy, reference="r-1") == claim

    assert [(c["status"], c["executed"]) for c in control.calls()[-2:]] == [
        (201, True),
        (200, False),
    ]


def test_filing_again_answers_the_claim_as_it_is_by_now(
    system: ClaimsSystem, control: SandboxControl, claim: Claim, policy: Policy
) -> None:
    system.file(claim, policy, reference="r-1")
    control.withdraw(claim.id)
    control.lapse(policy.number)

    assert system.file(claim, policy, reference="r-1").status == "withdrawn"
    assert system.policy(policy.number).status == "lapsed"


def test_another_reference_or_other_content_is_refused_and_changes_nothing(
    system: ClaimsSystem, claim: Claim, policy: Policy
) -> None:
    system.file(claim, policy, reference="r-1")
    other = claim.model_copy(update={"description": "Something else."})

    for filed, reference in ((claim, "r-2"), (other, "r-1"), (other, "r-2")):
        with pytest.raises(ClaimFiledOtherwise, match=claim.id) as refused:
            system.file(filed, policy, reference=reference)
        assert refused.value.reference == "r-1"
    assert system.claim(claim.id) == claim


def test_two_claims_share_a_policy_and_neither_changes_it(
    system: ClaimsSystem, control: SandboxControl, claim: Claim, policy: Policy
) -> None:
    second = claim.model_copy(update={"id": f"{claim.id}-b"})
    system.file(claim, policy, reference="r-1")
    control.lapse(policy.number)
    system.file(second, policy, reference="r-2")

    assert system.policy(policy.number).status == "lapsed"
    dearer = policy.model_copy(update={"limit": 1})
    third = claim.model_copy(update={"id": f"{claim.id}-c"})
    with pytest.raises(ClaimFiledOtherwise, match="policy"):
        system.file(third, dearer, reference="r-3")
    with pytest.raises(UnknownClaim):
        system.claim(third.id)


def test_an_estimate_grows_and_a_claim_is_withdrawn(
    system: ClaimsSystem, control: SandboxControl, claim: Claim, policy: Policy
) -> None:
    system.file(claim, policy, reference="r-1")
    more = EstimateLine(description="Bracket", category="lights", amount=460_00)

    grown = control.grow_estimate(claim.id, [*claim.estimate, more])
    assert (grown.total, system.claim(claim.id)) == (claim.total + 460_00, grown)
    assert control.withdraw(claim.id).status == system.claim(claim.id).status == "withdrawn"
    assert system.claim(claim.id).estimate == grown.estimate


def test_a_change_held_meanwhile_does_not_undo_another(
    system: ClaimsSystem,
    control: SandboxControl,
    claim: Claim,
    policy: Policy,
    at_once: Callable[[Callable[[int], object], int], list[object]],
) -> None:
    system.file(claim, policy, reference="r-1")
    control.fault("claims", "hold_before", method="PATCH")

    def grow_or_withdraw(number: int) -> object:
        if number == 0:
            return control.grow_estimate(claim.id, claim.estimate[:1]).status
        control.wait_held()
        control.withdraw(claim.id)
        return control.release()

    assert at_once(grow_or_withdraw, 2) == ["withdrawn", 1]
    assert len(system.claim(claim.id).estimate) == 1


def test_what_is_unknown_is_said(system: ClaimsSystem, control: SandboxControl) -> None:
    with pytest.raises(UnknownClaim, match="no claim 'none'"):
        system.claim("none")
    with pytest.raises(UnknownPolicy, match="no policy 'none'"):
        system.policy("none")
    for odd in ("../x?y", "a b", "..", "\N{GRINNING FACE}"):
        with pytest.raises(UnknownClaim):
            system.claim(odd)
    with pytest.raises(Rejected, match="404"):
        control.withdraw("none")
    with pytest.raises(Rejected, match="404"):
        control.lapse("none")


@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "error_500", "rate_limit"])
def test_reads_say_when_nobody_answers(system: ClaimsSystem, control: SandboxControl, kind: str) -> None:
    control.fault("claims", kind, method="GET")

    with pytest.raises(Unreachable):
        system.claim("none")


def test_nobody_listening_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    with pytest.raises(Unreachable, match=r"GET .* got no answer"):
        ClaimsSystem(url).policy("P-1")


def test_a_filing_that_is_none_is_refused_with_the_field(sandbox: SandboxProcess, claim: Claim, policy: Policy) -> None:
    def status(**body: object) -> tuple[int, str]:
        answer = httpx.put(f"{sandbox.url}/claims/{claim.id}", json=body)
        return answer.status_code, answer.json()["error"]

    whole = {"claim": claim.model_dump(mode="json"), "policy": policy.model_dump(mode="json")}
    assert status(**whole) == (422, "reference: Field required")
    assert status(**whole, reference="r", more=1)[0] == 422
    other = claim.model_copy(update={"id": "another"}).model_dump(mode="json")
    assert status(reference="r", claim=other, policy=whole["policy"])[0] == 422
