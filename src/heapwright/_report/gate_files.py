"""What the gate found, for build servers: JUnit's XML for their table of tests, SARIF for their notes on code."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from heapwright._studies.gate import MOST_CAUSES, Checked, Verdict
from heapwright._support.version import __version__

if TYPE_CHECKING:
    from heapwright._assure.proof.prove import Proof

_PLACE = re.compile(r"(?P<file>[^\s:()]+\.\w+):(?P<line>\d+)")
"""A file and a line in the name of a site."""


def junit(checked: Sequence[Checked]) -> str:
    """A test case for each trace and rule, failed where the rule is broken; JUnit's XML as build servers read it."""
    cases = [(item, verdict) for item in checked for verdict in item.verdicts]
    failures = sum(verdict.broken for _, verdict in cases)
    suite = ElementTree.Element("testsuite", name="heapwright check", tests=str(len(cases)), failures=str(failures))
    for item, verdict in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"heapwright.{item.trace}", name=f"not {verdict.rule} ({item.heap})"
        )
        if verdict.broken:
            failure = ElementTree.SubElement(case, "failure", message=str(verdict), type=verdict.rule.key)
            failure.text = "\n".join(map(str, item.causes[:MOST_CAUSES]))
    return _document(suite)


def junit_of_proof(proof: Proof) -> str:
    """A test case for each harness of a proof, failed where a property does not hold, with the calls that show it."""
    failures = sum(bool(harness.failures) for harness in proof.harnesses)
    suite = ElementTree.Element(
        "testsuite", name="heapwright prove", tests=str(len(proof.harnesses)), failures=str(failures)
    )
    for harness in proof.harnesses:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"heapwright.{proof.heap}", name=harness.name, time=f"{harness.seconds:.1f}"
        )
        if harness.failures:
            failure = ElementTree.SubElement(case, "failure", message=", ".join(harness.failures), type="property")
            failure.text = "\n".join(
                f"{what}: {'; '.join(calls) or 'no call'}" for what, calls in harness.failures.items()
            )
    return _document(suite)


def sarif(checked: Sequence[Checked]) -> str:
    """SARIF 2.1.0: a result for each broken rule, at the file and line, if known, whose bytes grew most."""
    results = [_result(item, verdict) for item in checked for verdict in item.verdicts if verdict.broken]
    rules = [{"id": key} for key in sorted({result["ruleId"] for result in results})]
    driver = {"name": "heapwright", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=1) + "\n"


def _document(suite: ElementTree.Element) -> str:
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _result(item: Checked, verdict: Verdict) -> dict[str, Any]:
    causes = item.causes[:MOST_CAUSES]
    text = ". ".join([f"{item.trace}, {item.heap}: {verdict}", *map(str, causes)]) + "."
    result: dict[str, Any] = {"ruleId": verdict.rule.key, "level": "error", "message": {"text": text}}
    places = [place for cause in causes if (place := _PLACE.search(cause.site))]
    if places:
        where = {
            "artifactLocation": {"uri": places[0]["file"].lstrip("/")},
            "region": {"startLine": int(places[0]["line"])},
        }
        result["locations"] = [{"physicalLocation": where}]
    return result
