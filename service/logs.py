"""
Logs: events with fields, to stderr; ids and states, never a payload.
"""

from __future__ import annotations

import logging
import sys

import structlog


def write_logs(*, as_json: bool) -> None:
    """Write the events of this process to stderr from now on, one a line."""
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
