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
    uv run pyright

# The tests; arguments go to pytest, as in `just test tests/graph -k parked`.
test *arguments:
    uv run pytest -n 2 {{ arguments }}

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

# The whole story, on both engines.
demo:
    uv run counterfoil demo
    uv run counterfoil demo --engine postgres
