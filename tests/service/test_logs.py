"""What a process logs is one event a line, whoever says it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SAYS = """
import logging
import structlog
from service.logs import write_logs

write_logs(as_json={as_json})
structlog.get_logger("counterfoil.worker").info("worker_started", concurrency=4)
logging.getLogger("psycopg.pool").info("waiting for pool 'pool-1' initialization")
logging.getLogger("psycopg.pool").warning("error connecting in %r: refused\\n\\tIs the server running?", "pool-1")
try:
    raise OSError("gone")
except OSError:
    logging.getLogger("asyncio").exception("nobody waited for it")
"""


def said(*, as_json: bool) -> list[str]:
    code = SAYS.format(as_json=as_json)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_as_json_every_line_is_a_document_also_what_libraries_warn_of() -> None:
    events = [json.loads(line) for line in said(as_json=True)]

    assert [(one["level"], one["event"].partition(":")[0]) for one in events] == [
        ("info", "worker_started"),
        ("warning", "error connecting in 'pool-1'"),
        ("error", "nobody waited for it"),
    ]
    assert events[2]["exception"].endswith("OSError: gone")


@pytest.mark.parametrize("word", ["worker_started", "error connecting in 'pool-1': refused", "nobody waited for it"])
def test_for_people_it_is_the_same_in_words(word: str) -> None:
    assert [line for line in said(as_json=False) if word in line]


def test_for_people_no_value_of_a_frame_is_in_a_traceback() -> None:
    code = """
import structlog
from service.logs import write_logs

def act():
    payload = "IBAN of somebody"
    raise OSError("gone")

write_logs(as_json=False)
try:
    act()
except OSError:
    structlog.get_logger("counterfoil.worker").exception("worker_failed")
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)

    assert "OSError: gone" in done.stderr
    assert "IBAN" not in done.stderr


def test_the_pages_are_imported_without_the_commands() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", "import service.http.app"], check=True)
