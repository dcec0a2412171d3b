"""One sandbox for all tests of the tools, a real process on a real socket; each test uses claims and keys of its own."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
import stripe

from tools.claim_models import Claim, Claimant, EstimateLine, Policy
from tools.sandbox import SandboxControl, SandboxProcess

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "sandbox.db") as process:
        yield process
        code, said = process.stop()
        assert (code, said) == (0, ""), "the sandbox ended cleanly and logged nothing"


@pytest.fixture
def control(sandbox: SandboxProcess) -> Iterator[SandboxControl]:
    yield sandbox.control
    sandbox.control.clear_faults()
    sandbox.control.release()
    sandbox.control.set_balance(99_999_999)


@pytest.fixture
def client(sandbox: SandboxProcess) -> stripe.StripeClient:
    return stripe.StripeClient("sk_test_tests", base_addresses={"api": sandbox.url}, max_network_retries=0)


@pytest.fixture
def claim_id() -> str:
    return f"c-{next(NUMBERS)}"


@pytest.fixture
def key(claim_id: str) -> str:
    return f"claim-{claim_id}:pay@1:pay:0123456789abcdef"


@pytest.fixture
def policy(claim_id: str) -> Policy:
    return Policy(
        number=f"P-{claim_id}",
        holder="Mara Quendel",
        currency="EUR",
        deductible=250_00,
        limit=5_000_00,
        exclusions=("tyres",),
        period_start=date(2026, 1, 1),
        period_end=date(2026, 12, 31),
    )


@pytest.fixture
def claim(claim_id: str, policy: Policy) -> Claim:
    return Claim(
        id=claim_id,
        policy_number=policy.number,
        claimant=Claimant(name="Mara Quendel", email="mara@example.com", payee="acct_mara"),
        currency="EUR",
        date_of_loss=date(2026, 3, 11),
        description="A van rolled back into the parked car.",
        estimate=(
            EstimateLine(description="Bumper", category="bodywork", amount=860_00),
            EstimateLine(description="Tyres", category="tyres", amount=420_00),
        ),
    )


@pytest.fixture
def at_once() -> Callable[[Callable[[int], object], int], list[object]]:
    """Run a function in several threads that start together; return results or the errors they raised."""

    def run(work: Callable[[int], object], count: int) -> list[object]:
        barrier = threading.Barrier(count)

        def one(number: int) -> object:
            barrier.wait(timeout=10)
            return work(number)

        with ThreadPoolExecutor(count) as threads:
            futures = [threads.submit(one, number) for number in range(count)]
            return [future.exception() or future.result() for future in futures]

    return run
