"""The gate: rules, verdicts, who caused what, and what build servers read of it."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from case_tables import each

from heapwright._assure.proof.harness import Harness
from heapwright._assure.proof.prove import Proof
from heapwright._report.gate_files import junit, junit_of_proof, sarif
from heapwright._studies.gate import Checked, Rule, judged
from heapwright._support.errors import HeapwrightError
from heapwright._support.units import number_of, per_cent


def holder(site: str, size: int, objects: int) -> dict[str, Any]:
    return {"site": site, "size": size, "objects": objects, "bytes": size * objects}


OLD = judged(
    "old",
    "tlsf",
    {"reserve_bytes": 80_000, "accesses": 1000},
    [holder("src/net.c:88", 100, 40), holder("src/log.c:7", 64, 10), holder("src/tls.c:3", 2048, 1)],
    (),
)
HELD = [holder("src/net.c:88", 144, 40), holder("src/log.c:7", 64, 9), holder("src/tls.c:3", 2048, 1)]
HELD += [holder("src/new.c:1", 8, 2), holder("src/new.c:1", 16, 1)]


def now(*rules: str, baseline: Checked | None = OLD) -> Checked:
    values = {"reserve_bytes": 90_000, "accesses": 1000, "safe_arena_bytes": None}
    return judged("now", "tlsf", values, HELD, [Rule.parse(rule) for rule in rules], baseline)


def test_numbers_of_bytes_are_read_with_units() -> None:
    assert [number_of(text) for text in ("131072", "128K", "1.5M", "2KiB", "1 g", "+5", "1e3")] == [
        131072,
        131072,
        1572864,
        2048,
        2**30,
        5,
        1000,
    ]
    for wrong in ("", "K", "12Q", "1,000", "nan", "inf"):
        with pytest.raises(ValueError, match=r".*"):
            number_of(wrong)


def test_a_change_too_small_to_be_seen_is_not_told_as_none() -> None:
    changes = (1000, 1042), (1000, 999), (10_000, 9_999), (10_000, 10_001), (5, 5)
    assert [per_cent(*change) for change in changes] == ["+4.2%", "-0.1%", "under 0.1%", "under 0.1%", "+0.0%"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("reserve_bytes", "no rule; write one as"),
        ("reserve_bytes = 3", "no rule"),
        ("reserv_bytes > 3", "no metric; did you mean reserve_bytes"),
        ("reserve_bytes > lots", "'lots': no number; valid: 131072, 128K, \\+5%"),
    ],
)
def test_what_is_no_rule_is_told(text: str, told: str) -> None:
    with pytest.raises(HeapwrightError, match=told):
        Rule.parse(text)


@each(
    ("rule", "broken"),
    [
        ("reserve_bytes > 90000", False),
        ("reserve_bytes >= 90000", True),
        ("reserve_bytes > 87K", True),
        ("reserve_bytes > 88K", False),
        ("reserve_bytes > +12.5%", False),
        ("reserve_bytes > +12%", True),
        ("accesses < -5%", False),
        ("accesses > +0%", False),
        ("safe_arena_bytes > 1G", True),
    ],
)
def test_a_rule_is_broken_beyond_its_bound(rule: str, broken: bool) -> None:
    assert now(rule).passed is not broken


def test_a_share_wants_a_baseline() -> None:
    with pytest.raises(HeapwrightError, match=r"reserve_bytes > \+5%: now has no baseline with reserve_bytes"):
        now("reserve_bytes > +5%", baseline=None)
    with pytest.raises(HeapwrightError, match="no baseline with energy_nJ"):
        now("energy_nJ > +5%")


def test_what_is_broken_comes_with_who_holds_more() -> None:
    assert now("reserve_bytes > 84K", "accesses > 1500").sentences() == [
        "FAIL now on tlsf: reserve_bytes 90,000 is beyond 86,016 (104.6%), "
        "10,000 more (+12.5%) than the baseline's 80,000",
        "ok now on tlsf: accesses 1,000 of 1,500 (66.7%), no more than the baseline's 1,000",
        "  src/net.c:88: 40 objects of 144 bytes hold 1,760 bytes more at the peak",
        "  src/new.c:1: 3 objects hold 32 bytes more at the peak",
    ]
    assert (
        now("safe_arena_bytes > 1K").sentences()[0] == "FAIL now on tlsf: safe_arena_bytes: no arena serves the trace"
    )


def test_without_sites_sizes_are_told() -> None:
    before = judged("old", "tlsf", {}, [holder("", 100, 40), holder("", 64, 10)], ())
    result = judged("now", "tlsf", {}, [holder("", 144, 40), holder("", 64, 12)], (), before)
    assert [(cause.size, cause.more_bytes) for cause in result.causes] == [(144, 5760), (64, 128)]


def test_where_one_of_both_names_no_sites_sizes_are_told() -> None:
    sited, unsited = [holder("src/net.c:88", 100, 40)], [holder("", 144, 40)]
    for before, after, size in ((sited, unsited, 144), (unsited, [holder("src/a.c:1", 200, 40)], 200)):
        result = judged("now", "tlsf", {}, after, (), judged("old", "tlsf", {}, before, ()))
        assert [(cause.site, cause.size, cause.more_bytes) for cause in result.causes] == [("", size, 40 * size)]


def test_only_those_who_hold_most_more_are_told() -> None:
    holders = [holder(f"src/{name}.c:1", 8, count) for name, count in zip("abcd", (4, 3, 2, 1), strict=True)]
    rules = [Rule.parse("reserve_bytes > 1")]
    result = judged("now", "tlsf", {"reserve_bytes": 2}, holders, rules, judged("old", "tlsf", {}, OLD.holders, ()))
    assert len(result.causes) == 4
    assert result.sentences()[1:] == [
        f"  src/{name}.c:1: {count} objects of 8 bytes hold {8 * count} bytes more at the peak"
        for name, count in (("a", 4), ("b", 3), ("c", 2))
    ]


def test_junit_has_a_case_for_each_rule() -> None:
    suite = ElementTree.fromstring(junit([now("reserve_bytes > 84K", "accesses > 1500")]))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    first, second = suite.findall("testcase")
    assert first.get("name") == "not reserve_bytes > 86,016 (tlsf)" and first.get("classname") == "heapwright.now"
    failure = first.find("failure")
    assert failure is not None and "src/net.c:88: 40 objects" in (failure.text or "")
    assert second.find("failure") is None


def test_sarif_points_at_who_holds_more() -> None:
    log = json.loads(sarif([now("reserve_bytes > 84K", "accesses > 1500")]))
    (run,) = log["runs"]
    (result,) = run["results"]
    assert (log["version"], result["ruleId"], result["level"]) == ("2.1.0", "reserve_bytes", "error")
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "src/net.c"},
        "region": {"startLine": 88},
    }
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["reserve_bytes"]
    assert json.loads(sarif([now("accesses > 1500")]))["runs"][0]["results"] == []


# ---- proofs --------------------------------------------------------------------------------------------------------


def proof(**failures: list[str]) -> Proof:
    held = Harness("calls", "3 mallocs", 40, {}, {}, 100, 1.0)
    edges = Harness("edges", "sizes", 5, failures, {}, None, 0.5)
    return Proof("tlsf", 3, 112, 32, "enumeration", "gcc 12", [held, edges])


def test_a_proof_is_a_line_and_a_case_a_harness() -> None:
    assert proof().verdict == "ok tlsf: 45 properties hold after any 3 calls"
    shut = proof(overlap=["malloc 8 -> #1", "free #1"], bounds=[])
    assert shut.verdict == "FAIL tlsf edges: overlap (and 1 more): malloc 8 -> #1; free #1"
    assert ElementTree.fromstring(junit_of_proof(proof())).get("failures") == "0"
    suite = ElementTree.fromstring(junit_of_proof(shut))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite] == ["calls", "edges"]
    (failure,) = suite.iter("failure")
    assert failure.text == "overlap: malloc 8 -> #1; free #1\nbounds: no call"
