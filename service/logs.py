"""
Logs: events with fields, to stderr; ids and states, never a payload.
"""

from __future__ import annotations

import logging
import sys

import structlog


def write_logs(*, as_json: bool) -> None:
    """Write the events of this process to stderr from now on, one a line; what libraries warn of too (psycopg's pool: nobody answers there)."""
    # Not the renderer's own tracebacks: where rich is installed they show the values of every frame, and those are payloads.
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    known: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    errors: list[structlog.typing.Processor] = [structlog.processors.format_exc_info] if as_json else []
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=known,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *errors, render],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[libraries])
    structlog.configure(
        processors=[*known, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
