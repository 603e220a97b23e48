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


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML document may hold, and the controls that it should not."""


def xml_text(text: str) -> str:
    """Text for XML, SVG and HTML: escapes, as \\x01, for the characters that these cannot hold."""
    return _NOT_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def printable(text: str) -> str:
    """Text for a terminal or a comment: escapes for what steers a terminal, or turns or breaks the line."""
    return "".join(item if item.isprintable() or category(item) == "Zs" else ascii(item)[1:-1] for item in text)
