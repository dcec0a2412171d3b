# The checks and proofs of this repository; `just` lists them.

[private]
default:
    @just --list

# Format the code and mend what the linter can.
format:
    uv run ruff check --fix
    uv run ruff format

# Everything a commit must pass.
check: lint types test

# Format, lint and layers.
lint:
    uv run ruff format --check
    uv run ruff check
    uv run lint-imports

# Types, by both checkers.
types:
    uv run mypy
    uv run mypy tests/typing
    uv run mypy benchmarks
    uv run pyright

# The tests; arguments go to pytest, as in `just test tests/graph -k parked`.
test *arguments:
    uv run pytest -n 3 {{ arguments }}

# Every safeguard taken away, one at a time: the suite must go red; words choose, as in `just mutations leases.py expiry`.
mutations *words:
    uv run python -m tests.mutations {{ words }}

# Two processes that meet right before they write, for as many rounds as you have time.
races rounds="1000":
    COUNTERFOIL_RACE_ROUNDS={{ rounds }} uv run pytest tests/races

# Any graph and any history, for as many examples as you have time; the nightly one.
properties examples="4000":
    COUNTERFOIL_EXAMPLES={{ examples }} uv run pytest -n 2 tests/properties

# The ledger against a long list: memory stays what it is for a thousand effects.
reconcile-memory effects="100000":
    COUNTERFOIL_RECONCILE_EFFECTS={{ effects }} uv run pytest -s tests/service/test_reconcile_memory.py

# Workers on hosts of their own, cut off from the database; takes root and iproute2.
hosts:
    uv run pytest -s tests/hosts

# Claims on workers that are killed at random: a thousand on Postgres, three hundred on one file; COUNTERFOIL_SOAK_SEED repeats one.
soak kills="20":
    COUNTERFOIL_SOAK_COMMAND=1 COUNTERFOIL_SOAK_KILLS={{ kills }} COUNTERFOIL_SOAK_CLAIMS=1000 uv run pytest -s tests/soak/test_soak.py -k "every_claim and postgres"
    COUNTERFOIL_SOAK_COMMAND=1 COUNTERFOIL_SOAK_KILLS={{ kills }} COUNTERFOIL_SOAK_CLAIMS=300 uv run pytest -s tests/soak/test_soak.py -k "every_claim and sqlite"

# A queue that builds up while no worker is there, and is drained once each, on both engines.
backlog count="10000":
    COUNTERFOIL_BACKLOG={{ count }} uv run pytest -s tests/soak/test_backlog.py

# Runs a second of 1, 2, 4 and 8 workers.
scale *arguments:
    uv run python -m benchmarks.scale {{ arguments }}

# What 100,000 parked runs cost those that move; Postgres.
parked *arguments:
    uv run python -m benchmarks.parked {{ arguments }}

# Two hundred approvers over ten thousand approvals that wait; Postgres.
inbox *arguments:
    uv run python -m benchmarks.inbox {{ arguments }}

# The pictures of the inbox in docs/images, by Debian's Chromium.
screenshots *arguments:
    uv run python -m tests.browser.screenshots {{ arguments }}

# The whole story, on both engines.
demo:
    uv run counterfoil demo
    uv run counterfoil demo --engine postgres
