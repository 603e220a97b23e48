"""What keeps people out of a page, as axe-core finds it in the browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from chromium import Chromium
from tool_requirements import absent

SOURCE = Path(__file__).resolve().parents[2] / "build/axe/node_modules/axe-core/axe.min.js"

FAULTS = """
axe.run(document, { resultTypes: ["violations"], iframes: false, preload: false, ...RULES })
  .then((found) => found.violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 4).join(", ")}`))
"""


def axe_source() -> str:
    """The script, which a page has to run first."""
    if not SOURCE.is_file():
        absent(str(SOURCE), "npm install --no-save --prefix build/axe axe-core")
    return SOURCE.read_text(encoding="utf-8")


def faults(browser: Chromium, rules: Sequence[str] = (), without: Sequence[str] = ()) -> list[str]:
    """What is serious or critical, by these rules or all but some: each rule with the first elements that break it."""
    requested = {"runOnly": [*rules]} if rules else {"rules": {rule: {"enabled": False} for rule in without}}
    result: list[str] = browser.run(FAULTS.replace("RULES", json.dumps(requested)))
    return result
