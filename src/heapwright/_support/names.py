"""Names: shortened for file systems, escaped for terminals, and addresses as they were entered."""

from __future__ import annotations

import re
from unicodedata import category

LONGEST = 255
"""Bytes that common file systems allow in a name."""


def shortened(name: str, most: int = LONGEST, ending: str = "") -> str:
    """The name and its ending in at most `most` bytes: a name that is cut ends in a hash of the whole name."""
    from hashlib import sha256

    content, room = name.encode(), most - len(ending.encode())
    if len(content) > room:
        name = f"{content[: room - 9].decode(errors='ignore')}-{sha256(content).hexdigest()[:8]}"
    return name + ending


_ADDRESS = re.compile(r"(?<![\w/])(s3|https?):/(?=[^/\s])")


def addressed(text: object) -> str:
    """A path, or a text with paths, in which addresses have both slashes: a `Path` of one keeps the first alone."""
    return _ADDRESS.sub(r"\1://", str(text))


def printable(text: str) -> str:
    """Text for a terminal or a comment: escapes for what steers a terminal, or turns or breaks the line."""
    return "".join(item if item.isprintable() or category(item) == "Zs" else ascii(item)[1:-1] for item in text)
