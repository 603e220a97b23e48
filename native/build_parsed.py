"""Writes the file in which the generator finds the core as it was read when the package was built."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from heapwright._generate.core import write_parsed

if __name__ == "__main__":
    write_parsed(Path(sys.argv[1]))
