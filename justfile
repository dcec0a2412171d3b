# The checks and proofs of this repository; `just --list` shows them.

default:
    @just --list

# Format the code.
format:
    uv run ruff format
    uv run ruff check --fix

# Everything a commit must pass.
check:
    uv run ruff format --check
    uv run ruff check
    uv run lint-imports
    uv run mypy
    uv run pyright
    uv run pytest -q
