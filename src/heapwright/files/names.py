"""Names of files that are made of other names."""

from __future__ import annotations

from hashlib import sha256

LONGEST = 255
"""Bytes that common file systems take for a name."""


def shortened(name: str, most: int = LONGEST, ending: str = "") -> str:
    """The name and its ending in at most so many bytes: a name that is cut ends in a hash of all of it."""
    content, room = name.encode(), most - len(ending.encode())
    if len(content) > room:
        name = f"{content[: room - 9].decode(errors='ignore')}-{sha256(content).hexdigest()[:8]}"
    return name + ending
