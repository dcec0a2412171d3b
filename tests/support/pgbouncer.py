"""
PgBouncer in front of a server, pooling transactions: each transaction of a client may run in another session of the server.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.processes import until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

CONFIGURATION = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
logfile = {folder}/log
"""


@contextmanager
def pgbouncer(server: str, *, users: Sequence[str] = (), further: str = "") -> Iterator[str]:
    """
    Run a PgBouncer before *server* and provide its URL's beginning, to which a database's name is added.

    Args:
        server: the server's URL.
        users: who may connect, beside the URL's own.
        further: lines for its configuration.
    """
    if not PROGRAM and "CI" not in os.environ:
        pytest.skip("no pgbouncer here: apt-get install pgbouncer")
    assert PROGRAM, "no pgbouncer here: apt-get install pgbouncer"
    parts: dict[str, Any] = conninfo_to_dict(server)
    host, owner = str(parts.get("host", "127.0.0.1")), str(parts.get("user", "postgres"))
    with TemporaryDirectory(prefix="counterfoil-") as name, socket.socket() as free:
        folder = Path(name)
        free.bind(("127.0.0.1", 0))
        listen = free.getsockname()[1]
        free.close()
        known = {owner: str(parts.get("password", "")), **dict.fromkeys(users, "")}
        (folder / "users").write_text("".join(f'"{user}" "{password}"\n' for user, password in known.items()))
        text = CONFIGURATION.format(host=host, port=parts.get("port", 5432), listen=listen, folder=folder) + further
        (folder / "ini").write_text(text)
        (folder / "log").touch()
        whose = _not_root(host)
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, whose)
        process = subprocess.Popen([PROGRAM, str(folder / "ini")], user=whose, group=None, stderr=subprocess.DEVNULL)
        try:
            until(lambda: True if _answers(listen, owner) else None)
            yield f"postgresql://{quote(owner)}@127.0.0.1:{listen}"
        finally:
            process.terminate()
            process.wait(30)


def through(proxy: str, url: str) -> str:
    """Return the URL of a database through a proxy."""
    return f"{proxy}{urlsplit(url).path}"


def _not_root(host: str) -> str:
    """Return who runs it: it refuses root, and whoever it is must reach the server's socket."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    if host.startswith("/") and (owner := Path(host).stat().st_uid):
        return pwd.getpwuid(owner).pw_name
    return "nobody"


def _answers(port: int, user: str) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(f"postgresql://{user}@127.0.0.1:{port}/postgres", connect_timeout=2).close()
        return True
    return False
