"""Reproduced papers: pages, figures and claims are written, and say what was measured."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import network

import heapwright
import keep_results as keep
from heapwright._support.errors import HeapwrightError
from heapwright_papers import PAGES, likeness, modem, pools, readings, reproduce, sensor, summary
from heapwright_papers import documents as papers_documents
from heapwright_papers.case_study import MUTANTS
from heapwright_papers.documents import Document, Statement, documents, statements_of
from heapwright_papers.page import AIM, Finding, Page, anchor, table_of
from heapwright_papers.sensor import SOS
from heapwright_papers.summary import appendix, write_summary
from heapwright_papers.traffic import FOOTNOTE, digest, packet_tables
from heapwright_papers.verdicts import HOLDS, Cause, Kind, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_what_cannot_be_reproduced_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="poker: cannot be reproduced; valid: drr, easyport, url, techniques, "):
        reproduce("poker", None, tmp_path)
    with pytest.raises(HeapwrightError, match="no such folder"):
        reproduce("drr", tmp_path / "missing", tmp_path)
    with pytest.raises(HeapwrightError, match="modem: is read in one way; valid: drr, easyport, url, all"):
        reproduce("modem", None, tmp_path, reading="pool-fifo")
    with pytest.raises(HeapwrightError, match="sideways: no reading; valid: "):
        reproduce("drr", None, tmp_path, reading="sideways")
    (tmp_path / "empty").mkdir()
    with pytest.raises(HeapwrightError, match="holds no packet table"):
        reproduce("drr", tmp_path / "empty", tmp_path)


def answer(page: Page, statement: str, here: str, verdict: Verdict, on: str = "") -> None:
    """Answer a statement of the page."""
    page.findings.append(Finding(statements_of(page.name)[statement], here, verdict, on))


def test_a_page_is_a_heading_tables_and_what_it_answers(tmp_path: Path, paper: None) -> None:
    page = Page("p", "Title & more", "Someone 2006")
    page.lead("In *short*.")
    page.text("## Some *words* & more\n\nTable 3.")
    page.text(table_of(("name", "value"), [("a", 1), ("b", 2.5)]))
    answer(page, "p-first", "2", Verdict(Kind.FAILS, Cause.TRAFFIC, "ours has 2"), on="real networks")
    answer(page, "p-first", "1", HOLDS, on="the paper's mix")
    answer(page, "p-second", "7.5", Verdict(Kind.NOISE, why="5 seeds: 7 to 8"))
    short, html, whole = page.write(tmp_path)
    assert short.read_text().startswith("# Title & more\n\nIn *short*.\n\n[Tables and text in full](p-details.html); ")
    assert "<title>Title &amp; more</title>" in html.read_text() and 'href="p-details.html"' in html.read_text()
    assert f"`heapwright reproduce p`, Heapwright {heapwright.__version__}; " in page.details()
    table = "| name | value |\n| --- | ---: |\n| a | 1 |\n| b | 2.5 |\n"
    assert f"\n\n## Some *words* & more\n\nTable 3.\n\n{table}" in page.details()
    assert '<h2 id="some-words--more">' in whole.read_text()
    rows = (
        appendix({"p": json.loads((tmp_path / "p.json").read_text())})
        .split("## A document\n\n")[1]
        .split("\n\n")[0]
        .splitlines()
    )
    assert rows[0] == "| where | the paper says | the paper | here | verdict | because | page |"
    assert rows[3:7] == [
        "| 1 | it is one | 1 | real networks: 2 | does not hold | our traffic differs: ours has 2 | [p](p.md) |",
        "| 1 | it is one | 1 | the paper's mix: 1 | holds |  | [p](p.md) |",
        "| 2 | it is many | 8 | 7.5 | holds within noise | 5 seeds: 7 to 8 | [p](p.md) |",
        "| 3 | on a Pentium |  | a Cortex-M3 | set-up |  | [p](p.md) |",
    ]


def test_a_page_answers_each_of_its_statements_and_no_other(tmp_path: Path, paper: None) -> None:
    page = Page("p", "Title", "Someone 2006")
    answer(page, "p-first", "1", HOLDS)
    with pytest.raises(LookupError, match="p: no verdict on p-second"):
        page.write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_first_page_lists_every_statement_in_order_and_counts_each_once(tmp_path: Path, paper: None) -> None:
    page = Page("p", "Title", "Someone 2006")
    answer(page, "p-first", "1", HOLDS)
    answer(page, "p-second", "7.5", Verdict(Kind.FAILS, Cause.UNEXPLAINED, "nothing found"))
    page.write(tmp_path)
    first, _, html = write_summary(tmp_path, ("p", "q"))
    text = appendix({"p": json.loads((tmp_path / "p.json").read_text())})
    assert "<option>does not hold</option>" in html.read_text() and "<script>" in html.read_text()
    assert (
        "| [p](p.md) | Title | 1 | 0 | 0 | 1 | 0 | 0 | 1 | 0 | 0 |\n| all |  | 1 | 0 | 0 | 1 | 0 | 0 | 1 | 0 | 0 |"
        in (first.read_text())
    )
    assert (
        "| page | our traffic differs | the paper can be read in another way | our choice where the paper is silent |"
        in text
    )
    assert "| [p](p.md) | 0 | 0 | 0 | 0 | 1 |\n| all | 0 | 0 | 0 | 0 | 1 |" in text
    assert text.split("## A document\n\n")[1].split("\n\n")[0].splitlines()[2:] == [
        "| abstract | it is many | 8 | see 2 | does not hold | not explained: nothing found | [p](p.md) |",
        "| 1 | it is one | 1 | 1 | holds |  | [p](p.md) |",
        "| 2 | it is many | 8 | 7.5 | does not hold | not explained: nothing found | [p](p.md) |",
        "| 3 | on a Pentium |  | a Cortex-M3 | set-up |  | [p](p.md) |",
        "| 4 | another |  |  |  | `heapwright reproduce q` answers it | q |",
    ]
    (tmp_path / "p.json").write_text("{}")
    with pytest.raises(HeapwrightError, match=r"p.json: not what a page leaves .*; remove it, or write its page"):
        write_summary(tmp_path, ("p", "q"))


def test_a_page_names_its_traffic_and_marks_what_was_laid_end_to_end(tmp_path: Path, paper: None) -> None:
    page = Page("p", "Title", "Someone 2006")
    table = network(1, True)
    for name in ("campus", "zeek_mix", "campus"):
        page.traffic({name: table})
    answer(page, "p-first", "1", HOLDS)
    answer(page, "p-second", "8", HOLDS)
    page.write(tmp_path)
    details, text = page.details(), appendix({"p": json.loads((tmp_path / "p.json").read_text())})
    seconds = f"{table.ts_us[-1] / 1e6:,.0f}"
    assert f"| p | campus | {len(table):,} | {seconds} | `{digest(table)}` |" in text
    assert f"| p | zeek_mix† | {len(table):,} | {seconds} | `{digest(table)}` |" in text
    assert text.count("| campus ") == 1 and FOOTNOTE in text and "`heapwright reproduce p --packets DIR`" in details


def test_gaps_of_captures_laid_end_to_end_are_closed_and_others_stay(tmp_path: Path) -> None:
    quiet = replace(network(1, True), ts_us=network(1, True).ts_us ** 2)
    assert np.diff(quiet.ts_us).max() > 1e6
    for name in ("campus", "zeek_mix"):
        quiet.write(tmp_path / f"{name}.parquet")
    result = packet_tables(tmp_path)
    assert np.array_equal(result["campus"].ts_us, quiet.ts_us)
    assert np.array_equal(np.diff(result["zeek_mix"].ts_us), np.minimum(np.diff(quiet.ts_us), 1_000_000))


def test_statements_have_one_id_each_and_repeat_only_what_is_there() -> None:
    statements = [statement for document in documents() for statement in document.statements]
    by_id = {statement.id: statement for statement in statements}
    assert len(by_id) == len(statements)
    for statement in statements:
        assert statement.page in PAGES and statement.where and statement.says, statement.id
        assert not statement.same_as or not by_id[statement.same_as].same_as, statement.id


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch, no_tools: None) -> None:
    """One document of five statements in place of the sources."""
    statements = (
        Statement("p-abstract", "abstract", "it is many", "8", same_as="p-second"),
        Statement("p-first", "1", "it is one", "1"),
        Statement("p-second", "2", "it is many", "8"),
        Statement("p-machine", "3", "on a Pentium", standing=Verdict(Kind.SET_UP, why="a Cortex-M3")),
        Statement("q-other", "4", "another"),
    )
    for module in (summary, papers_documents):
        monkeypatch.setattr(module, "documents", lambda: (Document("d", "A document", statements),))


def test_what_comes_from_a_file_is_no_html_of_the_page(tmp_path: Path, no_tools: None) -> None:
    page = Page("p", "<b>Title", "Someone 2006")
    page.text(table_of(("network", "packets"), [("<script>alert(1)</script>", 1)]))
    _, html, details = page.write(tmp_path)
    assert all("<b>" not in item.read_text() and "<script>" not in item.read_text() for item in (html, details))
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in details.read_text()


CHECKOUT = Path(__file__).parents[2]
RESULTS = CHECKOUT / "papers" / "findings"
"""The findings of `reproduce all` on real networks, as `papers/keep_results.py` keeps them."""


def test_the_results_answer_every_statement_and_the_index_in_docs_is_theirs(tmp_path: Path) -> None:
    for name in PAGES:
        shutil.copy(RESULTS / f"{name}.json", tmp_path)
        answered = {finding["id"] for finding in json.loads((tmp_path / f"{name}.json").read_text())["findings"]}
        assert answered == set(statements_of(name)), name
    digests = {name: digest for digest, name in map(str.split, keep.DIGESTS.read_text().splitlines())}
    for written in write_summary(tmp_path, PAGES):
        assert hashlib.sha256(written.read_bytes()).hexdigest() == digests[written.name]
    assert keep.INDEX.read_text() == keep.index((tmp_path / "README.md").read_text())


def test_results_are_kept_with_a_line_for_each_finding() -> None:
    for name in PAGES:
        text = (RESULTS / f"{name}.json").read_text()
        assert keep.compact(json.loads(text)) == text
        assert len(re.findall('^{"id": ', text, re.MULTILINE)) >= len(json.loads(text)["findings"])


def test_the_first_page_leads_to_every_table_in_one_click(tmp_path: Path) -> None:
    for name in PAGES:
        shutil.copy(RESULTS / f"{name}.json", tmp_path)
    write_summary(tmp_path, PAGES)
    index = (tmp_path / "README.md").read_text().split("## Pages")[0]
    tables = (
        ("Table 1", "techniques"),
        ("Table 3", "drr"),
        ("Table 5", "url"),
        ("Figure 9", "pools"),
        ("Table I", "sensor"),
    )
    for table, page in tables:
        (link,) = re.findall(rf"\[{table}\]\({page}-details.html#([\w-]+)\)", index)
        headings = json.loads((RESULTS / f"{page}.json").read_text())["headings"]
        (heading,) = (item for item in headings if anchor(item) == link)
        assert table.split()[-1] in heading
    assert index.count("| [Table") + index.count("| [Figure") == len(documents())
    links = re.findall(r"\[(Table|Figure) (\w+)\]\(([\w-]+)-details.html#([\w-]+)\)", index)
    assert len(links) == len(re.findall(r"\[(?:Table|Figure) \w+\]", index)) == 34, "none leads to a page as a whole"
    for kind, number, page, link in links:
        headings = json.loads((RESULTS / f"{page}.json").read_text())["headings"]
        (heading,) = (item for item in headings if anchor(item) == link)
        assert re.search(rf"{kind}s? (?:\w+(?:, | and ))*{number}\b", heading), (kind, number, heading)


def test_the_leading_readings_are_the_likest_and_no_table_runs_against_the_papers() -> None:
    """By the kept tables: over six the mean rank correlation is 0.67 of fragmentation and 0.5 of time, none below 0.

    DRR and Easyport are judged by the same readings, which the other two applications choose each; URL by others, which
    its times speak against, unless readings that Table 1 goes against are left out.
    """
    kept = {name: json.loads((RESULTS / f"{name}.json").read_text())["likeness"] for name in likeness.APPLICATIONS}
    result = likeness.held_out(kept)
    assert result["leads"], result["names"]
    judge = likeness.Judge(kept)
    for name in likeness.APPLICATIONS:
        assert [reading.name for reading in readings.chosen_without(name)] == judge.best(name).names, name
    assert readings.chosen_without("drr") == readings.chosen_without("easyport") == readings.leading()
    for side in (result["chosen"], result["consistent"]):
        assert side["fragmentation_rank"] >= 0.67 and side["time_rank"] >= 0.5 and side["least"] >= 0, side
    assert result["apart"]["fragmentation_rank"] >= 0.58 and result["apart"]["time_rank"] >= 0.36, "the aim is missed"


REACHED = {"modem": 0.72, "drr": 0.75, "easyport": 0.68}
"""Where the aim is missed: the paper's own words leave more than a fifth to any allocator, or readings are chosen by
likeness, whatever holds."""


@pytest.mark.parametrize("name", [*PAGES[:3], *PAGES[4:]])
def test_most_contests_that_hold_do_not_with_another_allocator_in_the_place_of_their_own(name: str) -> None:
    """And those that are set-up do with each: nothing in them hangs on theirs. Techniques proposes no allocator."""
    mutants = json.loads((RESULTS / f"{name}.json").read_text())["mutants"]
    assert set(mutants["flipped"]) == set(MUTANTS)
    assert sum(mutants["flipped"].values()) >= REACHED.get(name, AIM) * len(MUTANTS) * mutants["holds"]
    assert set(mutants.get("still", {}).values()) <= {mutants.get("set-up")}


OF_A_TECHNIQUE = ("modem-address-order", "modem-immediate-overhead", "modem-deferred-time", "modem-deferred-memory")


@pytest.mark.parametrize("name", ["modem", "pools", "sensor"])
def test_what_holds_is_about_an_allocator_of_its_page_or_says_why_it_is_not(name: str) -> None:
    result = json.loads((RESULTS / f"{name}.json").read_text())["findings"]
    places = {
        "modem": {*modem.FOUR},
        "pools": {*pools.pools()},
        "sensor": {*sensor.heaps(), sensor.MANTIS, SOS},
    }
    for item in result:
        statement = statements_of(name)[item["id"]]
        assert not statement.contest or statement.contest in places[name], statement.id
        assert not (statement.contest and statement.exempt), statement.id
        if item["holds"]:
            assert statement.contest or statement.exempt, statement.id
    exempt = {id_ for id_, item in statements_of(name).items() if item.exempt}
    assert exempt == ({*OF_A_TECHNIQUE, "modem-workload"} if name == "modem" else set())


def test_techniques_proposes_no_allocator_whose_place_another_could_take() -> None:
    """Its statements set ways of one technique against each other; the grid has them all, and none is its own."""
    assert not any(item.contest for item in statements_of("techniques").values())
    assert "mutants" not in json.loads((RESULTS / "techniques.json").read_text())


def test_a_contest_is_tried_with_others_in_the_place_of_the_allocator_that_it_is_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = {"here": "{costs['ours']}", "holds": "costs['ours'] < costs['theirs']"}
    any_ = {"here": "{costs['ours']}", "holds": "costs['ours'] > 0", "kind": "set-up"}
    statements = {
        "p-less": Statement("p-less", "1", "ours costs less", answers=(answer,), contest="ours"),
        "p-more": Statement("p-more", "1", "theirs costs more", answers=(answer,), contest="theirs"),
        "p-any": Statement("p-any", "1", "ours costs something", answers=(any_,), contest="ours"),
        "p-traffic": Statement("p-traffic", "1", "less", answers=(answer,), exempt="about the traffic"),
    }
    monkeypatch.setattr("heapwright_papers.page.statements_of", lambda page: statements)
    page, costs = Page("p", "Title", "Someone 2006"), {"ours": 1, "theirs": 2}
    page.judge({"costs": costs})
    page.mutate({"dear": 5, "cheap": 1}, lambda place, other: {"costs": {**costs, place: other}})
    assert page.mutants == {
        "holds": 2,
        "flipped": {"dear": 1, "cheap": 1},
        "set-up": 1,
        "still": {"dear": 1, "cheap": 1},
    }


def test_the_appendix_says_what_a_bound_on_the_other_side_refuses_and_which_page_misses_the_aim(paper: None) -> None:
    verdicts = {"p-first": "larger than stated", "p-second": "holds"}
    output = {"our_value": "1", "cause": "", "why": ""}
    page: dict[str, Any] = {"traffic": [], "footnote": "", "mutants": {"holds": 2, "flipped": {"dear": 2, "cheap": 1}}}
    page["findings"] = [{"id": id_, "on": "a mix", "verdict": verdict, **output} for id_, verdict in verdicts.items()]
    page["at_least"] = [{"id": id_, "on": "a mix", "holds": id_ == "p-first"} for id_ in verdicts]
    text = appendix({"p": page})
    assert "p 1 of 2, 1 within the band." in text
    assert "| p | it is one | a mix | yes | larger than stated | the upper bound |" in text
    assert "| p | it is many | a mix | no | holds | the least: short of it by more than a tenth |" in text
    assert "Missed by p." in text and "| p | 2 | 2 | 1 | 75 % |" in text
    page["mutants"]["flipped"]["cheap"] = 2
    assert "Missed by" not in appendix({"p": page})


def test_the_artifacts_claims_are_what_the_pages_found() -> None:
    """Of sections that need no packets: so a run without them prints the same lines."""
    results = [item for name in PAGES for item in json.loads((RESULTS / f"{name}.json").read_text())["findings"]]
    lines = {(item["id"], f"{item['on']}: {item['our_value']}".removeprefix(": ")): item for item in results}
    text = (CHECKOUT / "docs" / "artifact.md").read_text()
    rows = [[cell.strip() for cell in row.split(" | ")] for row in text.splitlines() if row.startswith("| C")]
    assert [row[0] for row in rows] == [f"| C{number}" for number in range(1, 13)]
    for _, says, line, statement in rows:
        item = lines[statement.strip("|` "), line]
        assert item["holds"] and item["on"] != "real networks", line
        assert says.startswith(item["claim"]) and item["id"].partition("-")[0] in PAGES


def test_the_packet_tables_are_those_that_are_named(shared_data: Path) -> None:
    named = tomllib.loads((CHECKOUT / "papers" / "packets.toml").read_text())
    tables = packet_tables(shared_data / "packets")
    assert {name: (item["packets"], item["digest"]) for name, item in named.items()} == {
        name: (len(table), digest(table)) for name, table in tables.items()
    }
