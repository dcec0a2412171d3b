"""
The carrier's own claims system: filing claims with their policies, and what happens to them afterwards.

    claim    open ─withdraw─▶ withdrawn            policy    active ─lapse─▶ lapsed

Filing is idempotent by its reference: the same reference with the same content is answered with what is stored, as it is by
now. Anything else for a known id is a 409 that changes nothing. `filed` keeps what was filed, to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError
from starlette.routing import Route

from tools.claim_models import Claim, EstimateLine, Filing, Policy, Record
from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.claims_service import ClaimsService
from tools.sandbox.exchange import Exchange, Execution

Model = TypeVar("Model", bound=BaseModel)


class FilingRequest(Filing):
    """The body of `PUT /claims/{id}`."""

    reference: Annotated[str, Field(min_length=1, max_length=255)]


class EstimateRequest(Record):
    """The body of `PATCH /claims/{id}/estimate`: the new estimate, whole."""

    estimate: tuple[EstimateLine, ...] = Field(min_length=1, max_length=500)


@dataclass(frozen=True, slots=True)
class ClaimsApi:
    """The calls of the claims system."""

    exchange: Exchange
    service: ClaimsService

    def routes(self) -> list[Route]:
        """Return the routes."""
        endpoint = self.exchange.endpoint
        return [
            Route("/claims/{id}", endpoint(self.service, self.file), methods=["PUT"]),
            Route("/claims/{id}", endpoint(self.service, self.claim), methods=["GET"]),
            Route("/claims/{id}/withdraw", endpoint(self.service, self.withdraw), methods=["POST"]),
            Route(
                "/claims/{id}/estimate",
                endpoint(self.service, self.replace_estimate),
                methods=["PATCH"],
            ),
            Route("/policies/{number}", endpoint(self.service, self.policy), methods=["GET"]),
            Route("/policies/{number}/lapse", endpoint(self.service, self.lapse), methods=["POST"]),
        ]

    def file(self, call: Call) -> Execution:
        """Prepare to file a claim."""
        filing = _parsed(FilingRequest, call)
        if filing.claim.id != _name(call):
            raise Refusal(json_answer(422, {"error": f"claim.id is not {_name(call)!r}, which the URL names"}))
        return lambda: self._file(filing)

    def claim(self, call: Call) -> Execution:
        """Prepare to read a claim."""
        return lambda: _answer(self._claim(_name(call)))

    def policy(self, call: Call) -> Execution:
        """Prepare to read a policy."""
        return lambda: _answer(self._policy(_name(call)))

    def withdraw(self, call: Call) -> Execution:
        """Prepare to withdraw a claim; twice is once."""
        return lambda: self._put_claim(_name(call), status="withdrawn")

    def replace_estimate(self, call: Call) -> Execution:
        """Prepare to replace a claim's estimate: the repairer found more."""
        estimate = _parsed(EstimateRequest, call).estimate
        return lambda: self._put_claim(_name(call), estimate=estimate)

    PUT_POLICY = "update policies set body = :body where number = :number"

    def lapse(self, call: Call) -> Execution:
        """Prepare to end a policy; twice is once."""

        def execute() -> Answer:
            policy = self._policy(_name(call))
            lapsed = policy.model_copy(update={"status": "lapsed"})
            self.exchange.store.rows(self.PUT_POLICY, number=policy.number, body=lapsed.model_dump_json())
            return _answer(lapsed, executed=lapsed != policy)

        return execute

    ONE_CLAIM = "select reference, filed, body from claims where id = :id"
    ONE_POLICY = "select filed, body from policies where number = :number"
    INSERT_CLAIM = "insert into claims (id, reference, filed, body) values (:id, :reference, :filed, :filed)"
    INSERT_POLICY = """
        insert into policies (number, filed, body) values (:number, :filed, :filed) on conflict (number) do nothing
    """

    def _file(self, filing: FilingRequest) -> Answer:
        claim, policy = filing.claim.model_dump_json(), filing.policy.model_dump_json()
        if refused := self._taken(filing, claim, policy):
            return refused
        known = self.exchange.store.row(self.ONE_CLAIM, id=filing.claim.id) is not None
        if not known:
            self.exchange.store.rows(self.INSERT_POLICY, number=filing.policy.number, filed=policy)
            self.exchange.store.rows(self.INSERT_CLAIM, id=filing.claim.id, reference=filing.reference, filed=claim)
        stored = {
            "reference": filing.reference,
            "claim": self._claim(filing.claim.id).model_dump(mode="json"),
            "policy": self._policy(filing.policy.number).model_dump(mode="json"),
        }
        return json_answer(200 if known else 201, stored, executed=not known)

    def _taken(self, filing: FilingRequest, claim: str, policy: str) -> Answer | None:
        """Return the 409 if the claim or its policy is stored as something else."""
        stored = self.exchange.store.row(self.ONE_CLAIM, id=filing.claim.id)
        if stored and (stored["reference"] != filing.reference or stored["filed"] != claim):
            why = "with other content" if stored["reference"] == filing.reference else "under another reference"
            said = f"claim {filing.claim.id} is filed {why}"
            return json_answer(409, {"error": said, "reference": stored["reference"]})
        known = self.exchange.store.row(self.ONE_POLICY, number=filing.policy.number)
        if known and known["filed"] != policy:
            said = f"policy {filing.policy.number} is filed with other content"
            return json_answer(409, {"error": said, "reference": stored["reference"] if stored else None})
        return None

    PUT_CLAIM = "update claims set body = :body where id = :id"

    def _put_claim(self, claim_id: str, **changes: object) -> Answer:
        before = self._claim(claim_id)
        after = before.model_copy(update=changes)
        self.exchange.store.rows(self.PUT_CLAIM, id=after.id, body=after.model_dump_json())
        return _answer(after, executed=after != before)

    def _claim(self, claim_id: str) -> Claim:
        row = self.exchange.store.row(self.ONE_CLAIM, id=claim_id)
        if row is None:
            raise Refusal(json_answer(404, {"error": f"there is no claim {claim_id!r}"}))
        return Claim.model_validate_json(row["body"])

    def _policy(self, number: str) -> Policy:
        row = self.exchange.store.row(self.ONE_POLICY, number=number)
        if row is None:
            raise Refusal(json_answer(404, {"error": f"there is no policy {number!r}"}))
        return Policy.model_validate_json(row["body"])


def _name(call: Call) -> str:
    """Return the id or number that the path names."""
    return call.path.split("/")[2]


def _parsed(model: type[Model], call: Call) -> Model:
    try:
        return model.model_validate_json(call.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the body"
        raise Refusal(json_answer(422, {"error": f"{field}: {first['msg']}"})) from error


def _answer(record: Record, *, executed: bool = False) -> Answer:
    return json_answer(200, record.model_dump(mode="json"), executed=executed)
