"""
The command line: one module a subject, `app` puts them together.
"""

from service.cli.app import main

__all__ = ["main"]
