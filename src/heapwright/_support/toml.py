"""TOML files from anybody: read in bounded time and memory, or refused with a reason of one line."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_CHARACTERS = 1 << 20
DEEPEST = 64
"""How deep tables and lists may lie in one another."""
MOST_BITS = 128
"""Bits of an integer: more than TOML's 64, so that the reader of the key reports what would be valid."""

# The parser takes quadratic time for a key of many names.
_LONG_KEY = re.compile(rf"""(?:\.[ \t]*[\w"'-]+[ \t]*){{{DEEPEST}}}""")


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises ValueError, with a reason, for what is no TOML or beyond the bounds above."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{len(text):,} characters; at most {MOST_CHARACTERS:,}")
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {DEEPEST} names")
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEEPEST}") from None
    within: list[Any] = [tables]
    for _ in range(DEEPEST):
        results = [each for item in within for each in (item.values() if isinstance(item, dict) else item)]
        if any(isinstance(item, int) and item.bit_length() > MOST_BITS for item in results):
            raise ValueError(f"an integer of more than {MOST_BITS} bits")
        within = [item for item in results if isinstance(item, dict | list)]
        if not within:
            return tables
    raise ValueError(f"nested deeper than {DEEPEST}")
