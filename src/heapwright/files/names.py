"""Names: those of files that are made of other names, and any from a file as a person may see it."""

from __future__ import annotations

from hashlib import sha256
from unicodedata import category

LONGEST = 255
"""Bytes that common file systems take for a name."""


def shortened(name: str, most: int = LONGEST, ending: str = "") -> str:
    """The name and its ending in at most so many bytes: a name that is cut ends in a hash of all of it."""
    content, room = name.encode(), most - len(ending.encode())
    if len(content) > room:
        name = f"{content[: room - 9].decode(errors='ignore')}-{sha256(content).hexdigest()[:8]}"
    return name + ending


def printable(text: str) -> str:
    """Text for a terminal or a comment: escapes for what steers a terminal, or turns or breaks the line."""
    return "".join(one if one.isprintable() or category(one) == "Zs" else ascii(one)[1:-1] for one in text)
