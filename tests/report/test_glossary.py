"""How a page and the site define a term: `heapwright._report.glossary`, which is the manual's page."""

from __future__ import annotations

from pathlib import Path

from heapwright._replay.metrics import METRICS, words
from heapwright._report import glossary

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_terms_are_those_of_the_manual_in_plain_text() -> None:
    assert glossary.PAGE.samefile(DOCS / "glossary.md")
    terms = glossary.terms()
    assert terms["trace"] == "the calls of a program, recorded"
    assert terms["objective"] == "a metric that the front is ranked by", "no link"
    assert "--held-out" in terms["held out"] and not any(set("[]`|") & set(output) for output in terms.values())
    assert "high-water mark" in terms and "word" not in terms and "---" not in terms
    assert "quick" not in terms, "that is a word of summaries"


def test_a_metric_has_one_meaning_in_tables_and_in_the_glossary() -> None:
    terms = glossary.terms()
    shared = {words(key): metric.meaning for key, metric in METRICS.items() if words(key) in terms}
    assert {"footprint", "accesses", "smallest arena"} <= shared.keys()
    assert {word: terms[word] for word in shared} == shared


def test_terms_are_found_once_whole_and_in_the_plural() -> None:
    known: set[str] = set()
    text = "Traces: a trace on a retrace, the smallest arena of all arenas, lists in front of a front."
    results = [(text[place], output) for place, output in glossary.found(text, known)]
    terms = glossary.terms()
    assert results == [(shown, terms[shown.lower().removesuffix("s")]) for shown in ("Traces", "arenas", "front")]
    assert known == {"trace", "arena", "front"}
    assert list(glossary.found("The front of traces", known)) == []
