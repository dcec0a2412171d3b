"""
The control of a sandbox from Python: count the money, order faults, let what is held go, change a claim behind the agent's back.

Every call raises `Unreachable` if the sandbox does not answer and `Rejected` if it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from checkpointing.errors import Rejected
from tools.claim_models import Claim, EstimateLine, Policy
from tools.wire import call


@dataclass(frozen=True, slots=True)
class Payment:
    """
    A transfer that was executed.

    Attributes:
        amount: Minor units.
        currency: As Stripe has it, in lower case.
        created: Seconds since 1970, UTC.
        key: The idempotency key it came with.
    """

    id: str
    claim_id: str | None
    amount: int
    currency: str
    payee: str
    key: str | None
    description: str | None
    created: int


class SandboxControl:
    """The control of the sandbox at *base_url*."""

    def __init__(self, base_url: str, timeout_s: float = 30.0) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s

    def payments(self, claim_id: str | None = None) -> list[Payment]:
        """Return the executed transfers, of one claim or all, first made first."""
        body = self._call("GET", f"/sandbox/payments{_query(claim_id=claim_id)}")
        return [Payment(**payment) for payment in body["payments"]]

    def messages(self, claim_id: str | None = None) -> list[dict[str, Any]]:
        """Return the messages taken, first taken first, in Resend's shape with `claim_id` and `key`."""
        body = self._call("GET", f"/sandbox/messages{_query(claim_id=claim_id)}")
        return list(body["messages"])

    def tickets(self, external_id: str | None = None) -> list[dict[str, Any]]:
        """Return the tickets opened, with one external id or all, first opened first, in Zendesk's shape."""
        return list(self._call("GET", f"/sandbox/tickets{_query(external_id=external_id)}")["tickets"])

    def chat(self, channel: str | None = None) -> list[dict[str, Any]]:
        """Return the chat messages posted, in one channel or all, first posted first, in Slack's shape with `channel`."""
        return list(self._call("GET", f"/sandbox/chat{_query(channel=channel)}")["messages"])

    def calls(self) -> list[dict[str, Any]]:
        """Return every call, first come first: `method`, `path`, `key`, `outcome`, `status`, `executed`, `at_ms`, `request_id`."""
        return list(self._call("GET", "/sandbox/calls")["calls"])

    def fault(
        self,
        at: str,
        kind: str,
        *,
        times: int = 1,
        match: str | None = None,
        method: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Order a fault; kinds and meanings are in `tools.sandbox.faults`."""
        body = {
            "at": at,
            "kind": kind,
            "times": times,
            "match": match,
            "method": method,
            "seconds": seconds,
        }
        self._call("POST", "/sandbox/faults", body)

    def faults(self) -> list[dict[str, Any]]:
        """Return the faults ordered; `left` is how often each still hits."""
        return list(self._call("GET", "/sandbox/faults")["faults"])

    def clear_faults(self) -> None:
        """Order nothing any more."""
        self._call("DELETE", "/sandbox/faults")

    def release(self) -> int:
        """Let everything go that is held; return how much it was."""
        return int(self._call("POST", "/sandbox/release")["released"])

    def wait_held(self, count: int = 1, timeout_s: float = 20.0) -> int:
        """Wait until *count* calls are held; return how many are. `TimeoutError` if it does not come to that."""
        held = int(self._call("GET", f"/sandbox/held{_query(count=count, seconds=timeout_s)}")["held"])
        if held < count:
            raise TimeoutError(f"{held} of {count} calls were held within {timeout_s} s")
        return held

    def set_balance(self, amount: int) -> None:
        """Let transfers above *amount* minor units fail."""
        self._call("PUT", "/sandbox/balance", {"amount": amount})

    def withdraw(self, claim_id: str) -> Claim:
        """Withdraw a claim, as the claimant would."""
        return Claim.model_validate(self._call("POST", f"/claims/{claim_id}/withdraw"), strict=False)

    def grow_estimate(self, claim_id: str, lines: Sequence[EstimateLine]) -> Claim:
        """Replace a claim's estimate by *lines*, as the repairer would who found more."""
        body = {"estimate": [line.model_dump(mode="json") for line in lines]}
        return Claim.model_validate(self._call("PATCH", f"/claims/{claim_id}/estimate", body), strict=False)

    def lapse(self, policy_number: str) -> Policy:
        """End a policy, as the carrier would whose holder does not pay."""
        return Policy.model_validate(self._call("POST", f"/policies/{policy_number}/lapse"), strict=False)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        answer = call(method, f"{self._base_url}{path}", body=body, timeout_s=self._timeout_s)
        if answer.status >= 400:
            raise Rejected(f"the sandbox answered {answer.status} to {method} {path}: {answer.text('error')}")
        return answer.body


def _query(**values: object) -> str:
    given = {name: value for name, value in values.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
