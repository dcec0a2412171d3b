"""
Text from outside (an error's message, a receiver's reason) in a form that both engines and JSON can store.
"""

from __future__ import annotations


def storable(text: str) -> str:
    """Return *text* with what cannot be stored, lone surrogates and U+0000, written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
