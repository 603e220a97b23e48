"""Names in which ``*`` stands for any letters."""

from __future__ import annotations

import re
from collections.abc import Sequence


def matching(pattern: str, names: Sequence[str]) -> list[int]:
    """Where the names are that a pattern stands for. O(names)."""
    meant = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    return [at for at, name in enumerate(names) if meant.fullmatch(name)]
