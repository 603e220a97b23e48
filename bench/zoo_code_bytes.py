"""Measures the code of every zoo recipe, for the list that `heapwright zoo` prints.

    python bench/zoo_code_bytes.py

Writes src/heapwright/_recipes/zoo/code_bytes.csv: malloc, free and realloc with what they call, code and constants, for
a Cortex-M3 at -Os with Debian's arm-none-eabi-gcc. Run it after changes of the core or of the generator; a test
compares a few.
"""

from __future__ import annotations

from pathlib import Path

import heapwright as hw

FILE = Path(__file__).resolve().parents[1] / "src" / "heapwright" / "_recipes" / "zoo" / "code_bytes.csv"


def main() -> None:
    """Measure, and replace the file."""
    session = hw.Session(cpu_name="cortex-m3", compiler="gcc")
    version = session.compiler_version
    lines = [f"# cortex-m3, -Os, {version}", "name,hash,code_bytes"]
    for recipe in hw.zoo():
        size = session.sizes(recipe, ("malloc", "free", "realloc"), ["Os"])["Os"]
        lines.append(f"{recipe.name},{recipe.hash},{size.text + size.data}")
        print(lines[-1])
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
