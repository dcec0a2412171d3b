"""
The client of the carrier's own claims system: filing a claim, and reading claims and policies as they are now.

Filing is idempotent by its reference, so it may be repeated after any doubt; the reads are what the agent looks at again
after a wait, before it acts on a claim that may have changed.
"""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from checkpointing.errors import Rejected, Unreachable
from tools.claim_models import Claim, Policy
from tools.wire import Answer, call

Model = TypeVar("Model", bound=BaseModel)


class UnknownClaim(Rejected, LookupError):
    """The claims system has no claim of this id; file it first."""


class UnknownPolicy(Rejected, LookupError):
    """The claims system has no policy of this number."""


class ClaimFiledOtherwise(Rejected):
    """
    The claim id is filed under another reference, or with other content; nothing was changed.

    Attributes:
        reference: The reference that has the claim.
    """

    def __init__(self, message: str, reference: str) -> None:
        super().__init__(message)
        self.reference = reference


class ClaimsSystem:
    """The claims system at *base_url*. It holds no connection, so threads and processes may share it."""

    def __init__(self, base_url: str, timeout_s: float = 10.0) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s

    def file(self, claim: Claim, policy: Policy, *, reference: str) -> Claim:
        """
        File *claim* under *policy* and return it as the system has it; the same call again changes nothing.

        Raises:
            ClaimFiledOtherwise: the id is taken; its `reference` says by whom.
            Rejected: the system does not take the claim as it is.
            Unreachable: no answer. File it again.
        """
        body = {
            "reference": reference,
            "claim": claim.model_dump(mode="json"),
            "policy": policy.model_dump(mode="json"),
        }
        answer = self._call("PUT", _path("claims", claim.id), body)
        if answer.status == 409:
            raise ClaimFiledOtherwise(answer.text("error"), answer.text("reference"))
        return _record(Claim, _checked(answer).body.get("claim"))

    def claim(self, claim_id: str) -> Claim:
        """Return the claim as it is now; `UnknownClaim` if there is none, `Unreachable` without an answer."""
        answer = self._call("GET", _path("claims", claim_id))
        if answer.status == 404:
            raise UnknownClaim(answer.text("error"))
        return _record(Claim, _checked(answer).body)

    def policy(self, number: str) -> Policy:
        """Return the policy as it is now; `UnknownPolicy` if there is none, `Unreachable` without an answer."""
        answer = self._call("GET", _path("policies", number))
        if answer.status == 404:
            raise UnknownPolicy(answer.text("error"))
        return _record(Policy, _checked(answer).body)

    def _call(self, method: str, path: str, body: object = None) -> Answer:
        return call(method, f"{self._base_url}{path}", body=body, timeout_s=self._timeout_s)


def _path(collection: str, name: str) -> str:
    return f"/{collection}/{quote(name, safe='')}"


def _checked(answer: Answer) -> Answer:
    if not 200 <= answer.status < 300:
        raise Rejected(f"the claims system answered {answer.status}: {answer.text('error')}")
    if not isinstance(answer.body, dict):
        raise Unreachable("the claims system answered something that is no record")
    return answer


def _record(model: type[Model], value: Any) -> Model:
    """Turn what came over the wire into a record; a record we cannot read is as good as no answer."""
    try:
        return model.model_validate(value, strict=False)
    except ValidationError as error:
        raise Unreachable(f"the claims system answered a {model.__name__} that this version cannot read") from error
