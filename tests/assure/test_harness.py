"""The queries to the model checker, and how its answers are read; tests/assure/test_prove.py runs it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._assure.proof.cbmc import told_calls
from heapwright._assure.proof.prove import METHODS, _in_words, harness_text, method_for, narrow
from heapwright._cli import heapwright
from heapwright._recipes.policy import policy


def step(name: str, value: int) -> dict[str, object]:
    return {"assignmentType": "actual-parameter", "lhs": name, "value": {"binary": f"{value:032b}"}}


def told(*numbers: int) -> list[dict[str, object]]:
    call: dict[str, object] = {"stepType": "function-call", "function": {"displayName": "told"}}
    return [
        call,
        *(step(name, value) for name, value in zip(("call", "object", "size", "alignment"), numbers, strict=True)),
    ]


def test_a_counterexample_reads_as_calls() -> None:
    other: list[dict[str, object]] = [
        {"stepType": "function-call", "function": {"displayName": "app_malloc"}},
        {"lhs": "x", "value": {}},
    ]
    trace = [*other, *told(1, 0, 24, 0), *other, *told(2, 0, 0, 0), *told(4, 1, 8, 0), *told(5, 2, 3, 16)]
    words = [_in_words(call) for call in told_calls(trace)]
    assert words == ["malloc 24 -> #1", "free #1", "realloc #2 8", "aligned_alloc 3 at a multiple of 16 -> #3"]
    assert _in_words({"call": 6, "object": 0, "size": 37, "alignment": 0}) == "free of byte 37 of the arena"


def test_lists_that_the_arena_has_no_blocks_for_are_left_out() -> None:
    tlsf = hw.zoo("tlsf")
    small = narrow(tlsf, 96)
    assert policy(small)["fixed_end"] < 1000 < policy(tlsf)["fixed_end"]
    assert policy(small)["reach"] >= policy(small)["fixed_end"] + 96
    first_fit = hw.zoo("first-fit-fast-free")
    assert narrow(first_fit, 96) is first_fit


def test_a_harness_states_its_bounds_and_has_what_it_calls() -> None:
    recipe = hw.zoo("first-fit-fast-free")
    calls = harness_text(recipe, "calls", "cbmc", 3, 112, 32)
    assert "an arena of 112 bytes; any 3 mallocs, a free of any object after each; requests up to 32 bytes" in calls
    assert "app_realloc" not in calls
    realloc = harness_text(recipe, "realloc", "cbmc", 3, 112, 32)
    assert "any 2 mallocs, a free of any object after each, then realloc" in realloc
    assert "app_realloc" in realloc


def test_where_a_word_may_look_like_a_header_objects_hold_zeros() -> None:
    plain = hw.zoo("first-fit-fast-free")
    checked = hw.Recipe.from_dict(plain.to_dict() | {"checks": "frees"})
    zeros = "an arena of 112 bytes, of zeros, in which objects hold zeros; any 3 mallocs"
    told = [zeros in harness_text(item, name, "cbmc", 3, 112, 32) for item, name in (
        (checked, "misuse"), (checked, "calls"), (plain, "misuse"))]  # fmt: skip
    assert told == [True, False, False]


def test_without_the_model_checker_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = CliRunner().invoke(heapwright, ["prove", "first-fit-fast-free"])
    assert isinstance(done.exception, hw.HeapwrightError)
    assert "apt-get install cbmc" in str(done.exception)


def test_without_a_compiler_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(hw.HeapwrightError, match="cc: no such C compiler, and a proof by enumeration needs one"):
        hw.prove("tlsf")


def test_bins_and_buddies_are_enumerated_and_others_are_for_the_model_checker() -> None:
    results = {
        name: method_for(hw.zoo(name)) for name in ("first-fit-fast-free", "drr-proposed", "tlsf", "binary-buddy")
    }
    assert list(results.values()) == ["cbmc", "cbmc", "enumeration", "enumeration"]
    with pytest.raises(hw.HeapwrightError, match="'z3' is no method; valid: " + ", ".join(METHODS)):
        hw.prove("tlsf", method="z3")  # type: ignore[arg-type]
