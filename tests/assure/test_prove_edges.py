"""Sizes at the edges of classes, and bins for all sizes: faults are found that small requests never meet."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner
from run_length import LONG, brief
from tool_requirements import needs

import heapwright as hw
from heapwright._assure.proof import contracts, unbounded
from heapwright._assure.proof.bins import check_bins, has_bins
from heapwright._assure.proof.edges import covers, edge_sizes, serves
from heapwright._assure.proof.harness import Harness
from heapwright._assure.proof.prove import check_edges, prove_unbounded
from heapwright._cli import heapwright
from heapwright._generate.emit import generated_files
from heapwright._recipes.policy import policy

pytestmark = pytest.mark.usefixtures("brief_proofs")

# What the generated text says, what it could have said, and by what that is found without the core next to it.
FAULTS = {
    "tlsf's good fit rounds down": ("tlsf", "app_bin_of(size - 1u) + 1u", "app_bin_of(size)"),
    "a bin's mark stays when it is empty": ("tlsf", "if (ahead < (APP_BINS * APP_LIST_STRIDE)) {", "if (0) {"),
    "a product overflows": ("first-fit-fast-free", "if ((size != 0u) && (count > (SIZE_MAX / size))) {", "if (0) {"),
    "a size loses its high bits": ("first-fit-fast-free", "return bytes > most;", "return (uint32_t)bytes > most;"),
    "objects share a block's last word": (
        "exact-bins",
        "return app_word_size(word) - APP_OVERHEAD;",
        "return app_word_size(word);",
    ),
    "a pool has a block too many": ("fixed-pool", "carved == APP_COUNTS", "carved > APP_COUNTS"),
}


def with_fault(fault: str) -> tuple[hw.Recipe, dict[str, str]]:
    heap, right, wrong = FAULTS[fault]
    recipe = hw.zoo(heap)
    files = generated_files(recipe)
    assert right in files["app_heap.c"]
    return recipe, files | {"app_heap.c": files["app_heap.c"].replace(right, wrong)}


# In the usual run those alone that test_prove.py does not prove, edges and bins included.
@pytest.mark.parametrize(
    "heap", brief(["all-round", "drr-proposed"], ["tlsf", "all-round", "binary-buddy", "drr-proposed"])
)
def test_edges_pass(heap: str) -> None:
    recipe = hw.zoo(heap)
    result = check_edges(recipe, generated_files(recipe))
    assert result.failures == {}
    assert result.programs and result.programs > brief(400, 1500)
    assert "compared with the core" in result.bounds


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_an_edge_is_found_by_the_properties_alone(fault: str) -> None:
    assert check_edges(*with_fault(fault), compared=False).failures


def test_the_core_beside_it_notices_another_order_of_a_list() -> None:
    recipe = hw.zoo("exact-bins")
    files = generated_files(recipe)
    source = files["app_heap.c"]
    right = "rest >= APP_SPLIT_LEAST"
    assert right in source
    files["app_heap.c"] = source.replace(right, "rest > APP_SPLIT_LEAST")
    assert check_edges(recipe, files, compared=False).failures == {}
    assert "generated: does what the core does" in check_edges(recipe, files).failures


@pytest.mark.parametrize("heap", brief(["lea-2.7.2", "half-fit"], ["tlsf", "lea-2.7.2", "exact-bins", "half-fit"]))
def test_bins_hold_for_all_sizes(heap: str) -> None:
    recipe = hw.zoo(heap)
    result = check_bins(recipe, generated_files(recipe))
    assert result.failures == {}


def test_bins_that_round_down_are_found() -> None:
    recipe, files = with_fault("tlsf's good fit rounds down")
    assert has_bins(recipe)
    assert "bins: what a search finds is large enough" in check_bins(recipe, files).failures


def test_edges_are_those_of_every_class() -> None:
    recipe = hw.zoo("tlsf")
    sizes = edge_sizes(recipe, policy(recipe), [8192])
    assert {0, 1, 2, 127, 128, 129, 4095, 4096, 4097, 2**64 - 1} <= set(sizes)
    assert {2**32 - 1, 2**32, 2**32 + 7, 2**32 + 8, 2**63 - 1, 2**64 - 65} <= set(sizes), "where sizes wrap"
    assert {16, 1475, 1476, 1477} <= set(edge_sizes(hw.zoo("drr-proposed"), policy(hw.zoo("drr-proposed")), [8192]))


def test_of_two_pools_no_mark_lies_behind_every_object() -> None:
    first, last = {"kind": "general", "max_size": 64, "region": 4096}, {"kind": "general"}
    assert covers(hw.Recipe.from_dict({"pool": [last]})) and not covers(hw.Recipe.from_dict({"pool": [first, last]}))


def test_a_failure_is_exit_code_3(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Harness("edges", "", 1, {"overlap: no two objects share a byte": ["malloc 1 -> #1"]}, {}, 1, 0.0)
    monkeypatch.setattr(sys.modules[prove_unbounded.__module__], "check_edges", lambda *_: broken)
    done = CliRunner().invoke(heapwright, ["prove", "fixed-pool", "--calls", "2", "--method", "enumeration"])
    assert done.exit_code == 3
    assert "FAILED overlap: no two objects share a byte: malloc 1 -> #1" in done.stdout


def test_a_fixed_pool_is_proved_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the usual run malloc and free alone, from the contracts of what they call."""
    needs("frama-c", "z3", "cvc5")
    if not LONG:
        monkeypatch.setattr(unbounded, "functions_with_contracts", lambda source: ["app_malloc", "app_free"])
    output = prove_unbounded(hw.zoo("fixed-pool"), "fixed-pool")
    assert output.failed == 0, output
    assert output.properties > (300 if LONG else 25)


def test_contracts_are_there_for_one_fixed_pool_alone() -> None:
    with pytest.raises(hw.HeapwrightError, match="tlsf: has no contracts"):
        unbounded.check_unbounded(hw.zoo("tlsf"), "tlsf")


def test_contracts_and_what_stands_around_statements_come_to_the_code() -> None:
    source = generated_files(hw.zoo("fixed-pool"))["app_heap.c"]
    output = contracts.with_contracts(source)
    kinds = [kind for kind, _, _ in contracts._sections()]
    written = [text.strip() for kind, _, text in contracts._sections() if kind == "statement"]
    results = [text for text in written if text in output]
    assert len(written) == kinds.count("statement") >= len(results) > 1
    assert not any(text in source for text in written)
    assert "app_malloc" in contracts.functions_with_contracts(source)
    assert [line for line in source.splitlines() if line not in output.splitlines()] == []


def test_a_proof_without_bounds_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbounded, "run_wp", lambda files, folder: (7, {"app_free": ["a goal"]}))
    output = unbounded.check_unbounded(hw.zoo("fixed-pool"), "fixed-pool")
    assert (output.name, output.properties, output.failures) == ("unbounded", 7, {"app_free": ["a goal"]})


def test_what_several_pools_or_bounded_ones_have_to_serve_is_not_known() -> None:
    last = {"kind": "general"}
    several = [{"kind": "fixed", "sizes": [64], "counts": [9]}, last]
    assert serves(hw.Recipe.from_dict({"pool": [last]})) != "0"
    for pools in (several, [{**last, "max_size": 64}], [{**last, "min_size": 64}]):
        assert serves(hw.Recipe.from_dict({"pool": pools})) == "0"
