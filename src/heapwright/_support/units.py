"""Numbers of bytes as people write them: 131072, 128K, 1.5M; changes in per cent as they read them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(?:([KMG])(?:i?B)?)?", re.IGNORECASE)


def number_of(text: str) -> float:
    """The number in a text; K, M and G (also KB, KiB) are powers of 1,024. Raises ValueError where there is none."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match.group(1)) * _UNITS[(match.group(2) or "").upper()]


def per_cent(before: float, after: float) -> str:
    """The change from a number that is not 0 to another one: "+4.2%"; a change too small to be seen is none of 0.0%."""
    share = (after - before) / before
    return f"{share:+.1%}" if after == before or abs(share) >= 0.0005 else "under 0.1%"
