"""The model checker and enumeration prove generated heaps, and find the faults that are put into them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from run_length import LONG, brief
from tool_requirements import needs

import heapwright as hw
from heapwright._assure.proof import prove as proving
from heapwright._assure.proof.harness import Harness
from heapwright._assure.proof.prove import METHODS, check_files, harness_text, programs_of
from heapwright._cli import heapwright
from heapwright._generate.emit import generated_files
from heapwright._recipes.recipe import Recipe

pytestmark = pytest.mark.usefixtures("brief_proofs")
FIRST_FIT = "first-fit-fast-free"
AT_TWO, AT_THREE = (2, 64, 20), (3, 80, 24)
"""Calls, bytes of the arena and of the largest request."""

# What the generated text says, and what a careless hand would have made of it.
FAULTS = {
    "size rounded down": ("APP_OVERHEAD + unit - 1u)", "APP_OVERHEAD)", "calls"),
    "remainder too small": ("if (rest >= APP_SPLIT_LEAST)", "if (rest + 4u >= APP_SPLIT_LEAST)", "calls"),
    "flag of the block before not set": (
        "app_load4(h, next) | APP_PREV_USED",
        "app_load4(h, next)",
        "calls",
    ),
    "capacity a word too large": ("return app_word_size(word) - APP_OVERHEAD;", "return app_word_size(word);", "calls"),
    "end of memory ignored": ("if ((app_load4(h, APP_LIMIT_AT) - top) < size)", "if (0)", "calls"),
}

EVERY = 8
"""Largest request with which the arena refuses none of tlsf's programs."""

AT_TWO_CALLS = ("size rounded down", "capacity a word too large")
"""Faults that show after two calls; the model checker takes ten times as long for three."""


@pytest.fixture
def cbmc() -> None:
    needs("cbmc")


@cache
def proof_of(heap: str, *flags: str) -> dict[str, Any]:
    (output,) = json.loads(CliRunner().invoke(heapwright, ["prove", heap, *flags, "--json"]).stdout)
    return dict(output)


def without_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs try no sizes at edges, but in long runs."""
    if not LONG:
        monkeypatch.setattr(proving, "check_edges", lambda *_: Harness("edges", "", 0, {}, {}, 1, 0.0))


@pytest.mark.usefixtures("cbmc")
def test_first_fit_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual run proves malloc and free; test_evidence.py has the page of a whole proof."""
    if not LONG:
        files = generated_files(hw.zoo(FIRST_FIT)) | {
            "harness.c": harness_text(hw.zoo(FIRST_FIT), "calls", "cbmc", 2, 56, 4)
        }
        result = check_files(files, tmp_path, "calls", "cbmc", "", 5)
        assert (result.failures, result.properties > 20) == ({}, True)
        return
    output = proof_of(FIRST_FIT, "--calls", "2", "--arena", "64", "--largest", "12")
    assert list(output)[:6] == ["heap", "calls", "arena_bytes", "largest_request_bytes", "method", "tool"]
    assert (output["method"], output["tool"].split()[0]) == ("cbmc", "CBMC")
    assert [item["name"] for item in output["harnesses"]] == ["calls", "calloc", "realloc", "aligned_alloc", "edges"]
    assert output["failed"] == 0, output
    assert output["properties"] > 100


@pytest.mark.parametrize(
    ("heap", "largest"),
    brief(
        [("tlsf", EVERY), ("binary-buddy", 16)],
        [("tlsf", EVERY), ("tlsf", 32), ("binary-buddy", 32), ("lea-2.7.2", 32)],
    ),
)
def test_bins_and_buddies_are_proved_by_running_every_program(heap: str, largest: int) -> None:
    output = proof_of(heap, *(["--largest", str(largest)] if largest != 32 else []))
    assert (output["calls"], output["largest_request_bytes"], output["method"]) == (3, largest, "enumeration")
    assert output["failed"] == 0, output
    assert output["harnesses"][0]["programs"] > {8: 10_000, 16: 50_000, 32: 500_000}[largest]
    if (heap, largest) == ("tlsf", EVERY):
        assert output["harnesses"][0]["programs"] == programs(EVERY + 1, 3), "one is left out: all of them fit"


def programs(sizes: int, steps: int, live: int = 0) -> int:
    """The number of programs of `steps` steps, with `live` allocated objects before.

    A step takes one of the sizes or none, then frees one of the live objects or none.
    """
    if steps == 0:
        return 1
    result = programs(sizes, steps - 1, live) + live * (programs(sizes, steps - 1, live - 1) if live else 0)
    return result + sizes * (programs(sizes, steps - 1, live + 1) + (live + 1) * programs(sizes, steps - 1, live))


def test_misuse_within_the_bounds_leaves_a_checked_heap_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_edges(monkeypatch)  # its edges and bins are those of tlsf
    if not LONG:
        monkeypatch.setattr(proving, "has_bins", lambda _: False)
    checked = hw.zoo("tlsf").model_copy(update={"checks": "frees", "name": "checked"})
    path = tmp_path / "checked.toml"
    path.write_text(checked.to_toml(), encoding="utf-8")
    output = proof_of(str(path), "--calls", "2", "--largest", brief("10", "20"))
    assert output["failed"] == 0, output
    (misuse,) = (item for item in output["harnesses"] if item["name"] == "misuse")
    assert misuse["programs"] > brief(30_000, 100_000)


@pytest.mark.parametrize(
    ("fault", "method"),
    [(fault, method) for fault in FAULTS for method in METHODS if LONG or method != "cbmc" or fault in AT_TWO_CALLS],
)
def test_a_fault_is_found_and_told_as_calls(
    fault: str, method: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if method == "cbmc":
        request.getfixturevalue("cbmc")
    right, wrong, name = FAULTS[fault]
    recipe = hw.zoo(FIRST_FIT)
    files = generated_files(recipe)
    assert right in files["app_heap.c"]
    files["app_heap.c"] = files["app_heap.c"].replace(right, wrong)
    files["harness.c"] = harness_text(recipe, name, method, *(AT_TWO if fault in AT_TWO_CALLS else AT_THREE))
    result = check_files(files, tmp_path, name, method, "", 5)
    assert result.failures
    assert any("malloc" in call for calls in result.failures.values() for call in calls)


def test_a_fault_ends_in_a_verdict_and_an_exit_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["prove", FIRST_FIT, "--calls", "2", "--largest", "8", "--method", "enumeration"]
    right, wrong, _ = FAULTS["capacity a word too large"]

    def faulty(recipe: Recipe) -> dict[str, str]:
        files = generated_files(recipe)
        return {**files, "app_heap.c": files["app_heap.c"].replace(right, wrong)}

    monkeypatch.setattr("heapwright._assure.proof.prove.generated_files", faulty)
    shut = CliRunner().invoke(heapwright, [*words, "--junit", str(tmp_path / "proof.xml")])
    assert shut.exit_code == 3
    verdict = shut.stdout.splitlines()[-1]
    assert verdict.startswith(f"FAIL {FIRST_FIT} ") and "malloc" in verdict
    failures = list(ElementTree.parse(tmp_path / "proof.xml").getroot().iter("failure"))
    assert failures and "malloc" in str(failures[0].text)


def test_a_call_that_never_ends_is_found(tmp_path: Path) -> None:
    recipe = hw.zoo(FIRST_FIT)
    files = generated_files(recipe)
    head, begin, rest = files["app_heap.c"].partition("void app_free(struct app_heap *heap, void *pointer)\n{\n")
    assert begin
    files["app_heap.c"] = f"{head}{begin}    for (volatile int i = 0; i < 1;) {{\n    }}\n{rest}"
    files["harness.c"] = harness_text(recipe, "calls", "enumeration", 2, 80, 24).replace(
        "PATIENCE_S = 20", "PATIENCE_S = 1"
    )
    result = check_files(files, tmp_path, "calls", "enumeration", "", 4)
    assert result.failures == {"unwinding: a call does not end": ["malloc 0 -> #2", "free #2"]}


def test_bounds_that_would_take_days_are_refused_with_the_number_of_programs() -> None:
    assert programs_of("calls", 2, 96, 12) == 14 * 2 * 14 * 3
    assert programs_of("misuse", 2, 96, 12) == 14 * 2 * 14 * 3 * 96
    with pytest.raises(hw.HeapwrightError, match=r"up to 7,785,814,256,640 programs to run"):
        hw.prove("tlsf", calls=6)
