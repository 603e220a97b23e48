"""Keep the results of `heapwright reproduce` in the repository, without the pages: findings, digests and an index.

    heapwright reproduce --packets DIR -o build/papers
    python papers/keep_results.py build/papers

writes `papers/findings/*.json` (what the tests check), `papers/digests_networks.txt` (SHA-256 of every page) and
`docs/papers/README.md`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "papers" / "findings"
DIGESTS = ROOT / "papers" / "digests_networks.txt"
INDEX = ROOT / "docs" / "papers" / "README.md"

INTRODUCTION = """# The source papers

Heapwright began with five papers on memory allocation in network and embedded systems. `heapwright reproduce` runs
their experiments and judges each of their statements. This page has the verdicts on 18 recorded networks and on the
papers' own traffic. The pages with all tables and figures are not in the repository; [the artifact](../artifact.md)
describes how to make them, in two to four minutes.

"""

VERDICTS = """The number of verdicts of each kind. A statement that is tested on two kinds of traffic has two
verdicts. *Shown* is visible in a figure, *fitted* was used to choose a parameter, and *set-up*
follows from the experiment's set-up.
"""


def compact(results: Any) -> str:
    """JSON with one line for each item of a list or object at the second level."""
    parts = []
    for key, value in results.items():
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def index(readme: str) -> str:
    """The index page, from the README that `reproduce` writes: without links to pages that are not kept."""
    text = readme[readme.index("## Tables and figures") :]
    text = re.sub(r"## Pages\n.*?(?=\n\|)", "## Verdicts\n\n" + VERDICTS, text, flags=re.DOTALL)
    return INTRODUCTION + re.sub(r"\[([^\]]*)\]\((?!http)[^)]*\)", r"\1", text)


def keep(folder: Path) -> None:
    """Write results, digests and index from a folder of pages."""
    RESULTS.mkdir(exist_ok=True)
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        (RESULTS / path.name).write_text(compact(results), encoding="utf-8")
    pages = sorted(path for path in folder.iterdir() if path.suffix in (".md", ".html"))
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in pages]
    DIGESTS.write_text("".join(digests), encoding="utf-8")
    INDEX.write_text(index((folder / "README.md").read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
