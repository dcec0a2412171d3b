"""
The claims agent with its real clients, as processes act on it: one claim of the examples under a number of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from checkpointing import open_journal
from graph import DurableGraph, approve, thread
from graph.claims import claims_graph
from nodes.claims import Outside
from tests.support.small_claim import LEASE
from tools.assessor import embedded_assessor
from tools.claim_file import load_claim_file
from tools.claims_system import ClaimsSystem
from tools.messages import notify_effect
from tools.payments import pay_effect

EXAMPLE = Path(__file__).parents[2] / "examples" / "claims" / "0042" / "claim.json"


@dataclass(frozen=True)
class RealClaim:
    """
    A claim nobody else uses.

    Attributes:
        url: The journal's.
        outside: Where the sandbox listens.
        folder: For artefacts.
    """

    url: str
    outside: str
    folder: Path
    claim_id: str

    @property
    def thread_id(self) -> str:
        """The claim's thread."""
        return f"claim-{self.claim_id}"

    @contextmanager
    def opened(self, *, hours: int = 0) -> Iterator[DurableGraph]:
        """Open the journal, some *hours* from now, and build the claims graph over it."""
        clock = (lambda: datetime.now(UTC) + timedelta(hours=hours)) if hours else None
        with open_journal(self.url, lease=LEASE, clock=clock, artefacts=str(self.folder / "artefacts")) as journal:
            outside = Outside(
                ClaimsSystem(self.outside),
                embedded_assessor,
                pay_effect(api_key="sk_test_crash", base_url=self.outside),
                notify_effect(api_key="re_crash", sender="Claims <claims@example.com>", base_url=self.outside),
            )
            yield claims_graph(journal, outside)

    def act(self, graph: DurableGraph, action: str) -> None:
        """Do one thing to the claim, as one process would."""
        match action:
            case "file and submit":
                file = load_claim_file(EXAMPLE)
                claim = file.claim.model_copy(update={"id": self.claim_id, "policy_number": f"P-{self.claim_id}"})
                policy = file.policy.model_copy(update={"number": f"P-{self.claim_id}"})
                ClaimsSystem(self.outside).file(claim, policy, reference=self.thread_id)
                graph.invoke({"claim_id": self.claim_id, "documents": []}, thread(self.thread_id))
            case "approve":
                [pending] = graph.journal.approvals.pending(thread_id=self.thread_id)
                graph.invoke(approve(pending), thread(self.thread_id, principal="adjuster-17"))
            case "resume":
                graph.invoke(None, thread(self.thread_id))
            case _:
                raise ValueError(action)

    def act_next(self, graph: DurableGraph) -> bool | None:
        """Do what is to be done next; true once there is nothing left."""
        run = graph.journal.runs.find(self.thread_id)
        if run is None:
            self.act(graph, "file and submit")
        elif run.state == "done":
            return True
        elif graph.journal.approvals.pending(thread_id=self.thread_id):
            self.act(graph, "approve")
        else:
            self.act(graph, "resume")
        return None
