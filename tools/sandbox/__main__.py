"""`python -m tools.sandbox --port 0 --database FILE`: run the sandbox until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from tools.sandbox.server import serve


def main() -> int:
    """Run the sandbox; return 0 after a clean end, 2 if it cannot start."""
    arguments = _parser().parse_args()

    def say(url: str) -> None:
        if arguments.port_file:
            _write_whole(arguments.port_file, url.rpartition(":")[2])
        sys.stdout.write(f"sandbox listening on {url}\n")
        sys.stdout.flush()

    if arguments.until_stdin_ends:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        serve(arguments.host, arguments.port, arguments.database, say)
    except OSError as error:
        sys.stderr.write(f"sandbox: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.sandbox", description="The outside world, on one port.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8042, help="0 takes a free port")
    parser.add_argument("--database", type=Path, required=True, help="SQLite file; made if it is not there")
    parser.add_argument("--port-file", type=Path, help="the port is written here once connections are taken")
    parser.add_argument("--until-stdin-ends", action="store_true", help="end when the process that started it does")
    return parser


def _end_with_stdin() -> None:
    """Wait until nobody holds the other end of standard input, and end as SIGTERM would."""
    while os.read(sys.stdin.fileno(), 4096):
        continue
    os.kill(os.getpid(), signal.SIGTERM)


def _write_whole(path: Path, text: str) -> None:
    """Write *text* to *path* so that a reader sees all of it or no file."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
