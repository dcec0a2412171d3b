"""One development server for all tests of this folder: it takes many seconds to start."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from checkpointing import Journal, open_journal
from tests.service.conftest import EXAMPLES, environment
from tests.support.agent_server import AgentServerProcess
from tools.claim_file import load_claim_file
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxProcess

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def settings(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("journal")
    outside = environment(f"sqlite:///{folder}/claims.db", sandbox.url, folder)
    return {**outside, "COUNTERFOIL_LEASE_SECONDS": "2"}


@pytest.fixture(scope="module")
def server(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentServerProcess]:
    with AgentServerProcess(tmp_path_factory.mktemp("server"), settings) as process:
        yield process


@pytest.fixture
def journal(settings: dict[str, str]) -> Iterator[Journal]:
    """The server's journal, opened here too."""
    with open_journal(settings["COUNTERFOIL_URL"]) as opened:
        yield opened


@pytest.fixture
def claim(sandbox: SandboxProcess) -> Callable[[], str]:
    """Files a claim nobody else uses, whose payout takes an adjuster, and returns its id."""

    def file() -> str:
        example, claim_id = load_claim_file(EXAMPLES / "0042" / "claim.json"), f"as-{next(NUMBERS)}"
        filed = example.claim.model_copy(update={"id": claim_id, "policy_number": f"P-{claim_id}"})
        policy = example.policy.model_copy(update={"number": f"P-{claim_id}"})
        ClaimsSystem(sandbox.url, 30).file(filed, policy, reference=f"claim-{claim_id}")  # as `sandbox --load` does
        return claim_id

    return file
