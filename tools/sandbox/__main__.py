"""`python -m tools.sandbox --port 0 --database FILE`: run the sandbox until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import sys
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

    try:
        serve(arguments.host, arguments.port, arguments.database, say)
    except OSError as error:
        sys.stderr.write(f"sandbox: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.sandbox", description="The outside world, on one port.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8642, help="0 takes a free port")
    parser.add_argument("--database", type=Path, required=True, help="SQLite file; made if it is not there")
    parser.add_argument("--port-file", type=Path, help="the port is written here once connections are taken")
    return parser


def _write_whole(path: Path, text: str) -> None:
    """Write *text* to *path* so that a reader sees all of it or no file."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
