"""The zoo: every named allocator is there, says what its source says, and can be listed and printed."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from case_tables import each

import heapwright as hw
from heapwright._cli import main
from heapwright._cli.tables import growth
from heapwright._heaps.names import resolve_recipe
from heapwright._recipes.geometry import Geometry
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import Compact, Fixed, General, Quick
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.worst_steps import worst_steps
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._recipes.zoo.facts import Facts, facts
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace

NAMES = [
    "all-round",
    "best-fit-fast-free",
    "best-fit-slow-free",
    "binary-buddy",
    "contiki-mmem",
    "contiki-ng-heapmem",
    "drr-proposed",
    "easyport-proposed",
    "enea-ose",
    "esp8266-umm",
    "espressif-tlsf",
    "espressif-tlsf-large",
    "exact-bins",
    "fast",
    "first-fit-fast-free",
    "first-fit-slow-free",
    "fixed-pool",
    "freertos-heap2",
    "freertos-heap4",
    "half-fit",
    "heaplib",
    "kingsley",
    "lea-2.7.2",
    "lea-2.7.2-128",
    "linux-pow2-page",
    "lvgl-tlsf",
    "lwip-mem",
    "lwip-mem-large",
    "mantisos",
    "mbedtls-buffer",
    "memmgr",
    "nano-qplus",
    "newlib-nano",
    "newlib-nano-2020",
    "nuttx-mm",
    "rt-thread-memheap",
    "rt-thread-small-mem",
    "small",
    "small-lists",
    "sos",
    "sos-kernel",
    "st-compact-memmgr",
    "st-memmgr",
    "st-memmgr-1",
    "st-memmgr-2",
    "st-memmgr-8",
    "symbian-rheap",
    "threadx-byte-pool",
    "tlsf",
    "uclinux",
    "umm-malloc",
    "url-proposed",
    "variable-pool",
    "victim-bins",
    "wifi-special-pools",
    "windows-ce",
    "windows-xp",
    "windows-xp-lookaside",
    "zephyr-sys-heap",
]

DOCS = Path(__file__).resolve().parents[2] / "docs" / "zoo"
TABLES = (DOCS / "README.md").read_text(encoding="utf-8")


def general(name: str) -> General:
    pool = zoo.load(name).canonical().pools[-1]
    assert isinstance(pool, General)
    return pool


def fixed(name: str) -> Fixed:
    pool = zoo.load(name).canonical().pools[0]
    assert isinstance(pool, Fixed)
    return pool


def test_the_zoo_is_complete() -> None:
    assert sorted(zoo.names()) == sorted(NAMES)
    assert [recipe.name for recipe in zoo.recipes()] == zoo.names()
    assert len({recipe.hash for recipe in zoo.recipes()}) == len(NAMES)


@each("name", NAMES)
def test_every_recipe_says_where_it_comes_from_and_what_was_chosen(name: str) -> None:
    recipe = zoo.load(name)
    assert recipe == Recipe.parse(
        (resources.files("heapwright._recipes.zoo") / f"{name}.toml").read_text(encoding="utf-8")
    )
    assert len(recipe.source) > 20
    assert "choice" in recipe.about
    assert Recipe.parse(recipe.to_toml()).hash == recipe.hash
    assert max(map(len, recipe.about.splitlines())) <= 120


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(HeapwrightError, match="did you mean tlsf"):
        zoo.load("tslf")
    with pytest.raises(HeapwrightError, match=r"valid: all-round, .* STUDY:ID"):
        resolve_recipe("?")


def test_a_heap_is_found_by_its_name() -> None:
    assert resolve_recipe("tlsf") == zoo.load("tlsf")


def test_modem_allocators_differ_in_fit_and_tags_only() -> None:
    """Peintner et al., sections 4.3 and 4.4: one 4-byte header, blocks by address, immediate coalescing."""
    for fit in ("first", "best"):
        for free, tags in (("slow", False), ("fast", True)):
            pool = general(f"{fit}-fit-{free}-free")
            assert (pool.fit, pool.boundary_tags) == (fit, tags)
            assert (pool.header, pool.free_list, pool.split, pool.coalesce) == (4, "implicit", "always", "immediate")


@pytest.mark.parametrize(
    ("name", "sizes", "cached"),
    [
        ("drr-proposed", (16, 1476), (16, 1476)),
        ("easyport-proposed", (66, 1514), (68, 1516)),  # payloads of whole words
        ("url-proposed", (8, 11, 20), (8, 12, 20)),
    ],
)
def test_network_allocators_have_the_papers_freelists(
    name: str, sizes: tuple[int, ...], cached: tuple[int, ...]
) -> None:
    """Mamagkakis et al. 2006, section 6."""
    quick, main_pool = zoo.load(name).pools
    assert isinstance(quick, Quick)
    assert isinstance(main_pool, General)
    assert quick.sizes == sizes
    assert (main_pool.fit, main_pool.split, main_pool.coalesce) == ("first", "always", "immediate")
    canonical = zoo.load(name).canonical().pools[0]
    assert isinstance(canonical, Quick)
    assert canonical.sizes == cached


def test_wifi_pools_have_the_papers_sizes() -> None:
    """Mamagkakis et al. 2007, section 4, A."""
    assert fixed("wifi-special-pools").sizes == (40, 64, 128, 256, 512, 1024, 1500)
    assert fixed("wifi-special-pools").find == "first-fit"


def test_st_memmgr_reaches_what_its_descriptor_does() -> None:
    """Das and Singh, section V.A: 15 bits of size; frames of 1, 2, 4, 8 bytes reach 32, 64, 128, 256 KB."""
    recipe = zoo.load("st-memmgr")
    reaches = [recipe.model_copy(update={"align": frame}).reach for frame in (1, 2, 4, 8)]
    assert reaches == [(32 << 10) - 1, (64 << 10) - 2, (128 << 10) - 4, (256 << 10) - 8]


@pytest.mark.parametrize(
    ("request_bytes", "block"), [(1, 8), (16, 32), (40, 64), (66, 128), (1460, 2048), (5000, 8192)]
)
def test_kingsley_rounds_to_powers_of_two(request_bytes: int, block: int) -> None:
    """FreeBSD rtld-elf/malloc.c: the next power of two of size + 4."""
    pool = fixed("kingsley")
    assert min(size for size in pool.sizes if size >= request_bytes) + pool.header == block
    assert pool.page == 4096


def test_tlsf_has_the_layout_of_its_implementation() -> None:
    """mattconte/tlsf 3.1, 32 bits: 4 bytes overhead, smallest block 16, 32 lists an octave, 3188 bytes of control."""
    pool = general("tlsf")
    assert (pool.header, pool.min_block, pool.linear_up_to, pool.bins_per_octave) == (4, 16, 128, 32)
    assert [pool.capacity_for(size, Geometry(4)) for size in (1, 12, 13, 1500)] == [12, 12, 16, 1500]
    assert policy(zoo.load("tlsf"))["control"] == pytest.approx(3188, abs=8)


@each(
    ("name", "blocks"),
    [
        ("lea-2.7.2", {40: 48, 1476: 1480, 1500: 1504, 1514: 1520}),
        ("windows-xp", {40: 48, 1476: 1488, 1500: 1512, 1514: 1528}),
        ("freertos-heap4", {1: 16, 40: 48, 1500: 1512}),
        ("half-fit", {1: 32, 16: 32, 17: 64, 1500: 2048}),
        ("umm-malloc", {1: 8, 4: 8, 5: 16, 40: 48}),
        ("zephyr-sys-heap", {1: 8, 4: 8, 5: 16, 40: 48}),
        ("symbian-rheap", {1: 8, 4: 8, 5: 12, 40: 44}),
        ("tlsf", {1: 16, 12: 16, 13: 20, 1500: 1504}),
        ("lwip-mem", {1: 20, 12: 20, 13: 24}),
    ],
)
def test_sizes_of_blocks(name: str, blocks: dict[int, int]) -> None:
    recipe = zoo.load(name)
    pool = recipe.pools[-1]
    assert isinstance(pool, General)
    overhead = pool.header + pool.trailer
    results = {size: pool.capacity_for(size, recipe.geometry) + overhead for size in blocks}
    assert results == blocks


@pytest.mark.parametrize(
    ("name", "overhead"), [("mantisos", 12), ("heaplib", 5), ("memmgr", 8), ("st-memmgr", 2), ("nano-qplus", 6)]
)
def test_bytes_of_descriptors(name: str, overhead: int) -> None:
    """Das and Singh, table I; Nano-Qplus as on a microcontroller with 2-byte pointers."""
    (pool,) = zoo.load(name).pools
    assert isinstance(pool, General)
    assert pool.header + pool.trailer == overhead


def test_bytes_of_descriptors_of_objects_that_move() -> None:
    """Das and Singh, table I: 4 bytes in front of a block, or 12 in the caller's handle and none in the arena."""
    (in_front,) = zoo.load("st-compact-memmgr").canonical().pools
    (outside,) = zoo.load("contiki-mmem").canonical().pools
    assert isinstance(in_front, Compact)
    assert isinstance(outside, Compact)
    assert (in_front.header, in_front.outside_bytes) == (4, 4)  # the program's own pointer
    assert (outside.header, outside.outside_bytes) == (0, 12)


def test_victim_bins_is_exact_bins_with_a_victim() -> None:
    assert general("victim-bins").victim_up_to == 2000
    without = general("victim-bins").model_copy(update={"victim_up_to": 0, "close_bins": 0})
    assert without == general("exact-bins")


def test_all_round_and_fast_are_small_behind_lists_that_give_back_what_idles() -> None:
    (small,) = zoo.load("small").to_dict()["pool"]
    ours, fast = (zoo.load(name).to_dict()["pool"] for name in ("all-round", "fast"))
    lists = {"kind": "quick", "up_to": 516, "lists_per_octave": 8, "flush": "idle"}
    assert fast == [lists, small]
    assert ours == [lists | {"keep": "apart"}, small | {"victim_up_to": 256}]


def test_small_lists_is_small_with_a_victim_behind_lists_of_few_blocks() -> None:
    (small,) = zoo.load("small").to_dict()["pool"]
    lists, pool = zoo.load("small-lists").to_dict()["pool"]
    assert pool == small | {"victim_up_to": 256}
    assert (lists["up_to"], lists["limit_blocks"]) == (64, 4)


@each("name", NAMES)
def test_every_allocator_has_a_page(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {name}\n")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings[:3] == ["## How it works", "## A block", "## Our choice"]
    assert f"\n\nVerified: {facts(zoo.load(name)).verification}.\n\n" in page


def test_the_tables_say_how_each_does() -> None:
    """On the broker's recording the footprint over the live peak and the accesses of a call; "-" where it refuses."""
    broker = Trace.read(DOCS.parents[1] / "examples" / "mosquitto_broker.parquet")
    shown = dict(re.findall(r"^\| \[(.*)\]\(\1\.md\) \| (.*) \| .* \|$", TABLES, re.MULTILINE))
    expected = {}
    for name in NAMES:
        recipe = zoo.load(name)
        metrics, known = hw.replay(broker, recipe).metrics, facts(recipe)
        served = ["-", "-"]
        if not metrics["failed"]:
            memory = (metrics["footprint_bytes"] or 0) / (metrics["requested_peak_bytes"] or 0)
            served = [f"{memory:.2f}", f"{(metrics['accesses'] or 0) / len(broker):.1f}"]
        rest = (worst_steps(recipe).short(), growth(known.growth_ratio, known.stable))
        expected[name] = " | ".join((*served, *rest))
    assert shown == expected


def test_how_many_rows_were_verified_in_which_way() -> None:
    ways = Counter(str(facts(recipe).verified) for recipe in zoo.recipes())
    assert ways["address"] >= 12
    assert dict(re.findall(r"^\| (\w+) \| (\d+) \|", TABLES, re.MULTILINE)) == {way: str(n) for way, n in ways.items()}
    readme = " ".join((DOCS.parents[1] / "README.md").read_text().split())
    assert f"reference allocators, {ways['address']} of them compared address by address" in readme


def test_a_recipe_that_was_changed_was_not_verified() -> None:
    own = Recipe.from_dict(zoo.load("tlsf").to_dict() | {"align": 8})
    assert (own.name, facts(own).verified, facts(own).verification) == ("tlsf", None, "")


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} - {"README"} <= set(zoo.names())


@each(
    ("name", "cost"),
    [
        ("tlsf", ((4,), 16, True)),
        ("half-fit", ((16,), 32, True)),
        ("zephyr-sys-heap", ((4,), 8, True)),
        ("kingsley", ((4,), 8, True)),
        ("sos", ((0,), 16, True)),
        ("sos-kernel", ((4,), 8, False)),
        ("lea-2.7.2", ((4,), 16, False)),
        ("best-fit-fast-free", ((4,), 8, False)),
        ("wifi-special-pools", ((8,), 20, False)),
        ("variable-pool", ((32,), 512, False)),
        ("binary-buddy", ((4,), 16, True)),
    ],
)
def test_facts(name: str, cost: tuple[tuple[int, ...], int, bool]) -> None:
    """A free block of the first fit pool behind the special ones holds two links and a tag as well as its header."""
    assert facts(zoo.load(name))[:3] == cost


def trace_of(tmp_path: Path, sizes: list[int]) -> Path:
    count = len(sizes)
    trace = Trace.from_columns(op=[0] * count, id=list(range(1, count + 1)), size=sizes, name="made")
    trace.write(tmp_path / "made.parquet")
    return tmp_path / "made.parquet"


# ---- the command ---------------------------------------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["heapwright", "zoo", *words])
    code = 0
    try:
        main()
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_lists_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(monkeypatch, capsys)
    assert (code, err) == (0, "")
    assert [name for name in NAMES if re.search(rf"^ *{name} ", out, re.MULTILINE)] == NAMES


def test_the_command_prints_one_as_a_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(monkeypatch, capsys, "kingsley")
    assert code == 0
    verified, _, text = out.partition("\n")
    assert verified == f"# Verified as it stands here: {facts(zoo.load('kingsley')).verification}"
    assert text == zoo.text("kingsley")
    assert Recipe.parse(out) == zoo.load("kingsley")


def test_json_holds_every_key(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(monkeypatch, capsys, "--json")
    listed = json.loads(out)
    assert code == 0
    assert [item["name"] for item in listed] == zoo.names()
    for item in listed:
        assert set(item) == {*Recipe.model_fields, *Facts._fields, "hash", "summary", "worst_steps", "unbounded"}
        assert item["code_bytes"] == facts(zoo.load(item["name"])).code_bytes
    _, out, _ = run(monkeypatch, capsys, "tlsf", "--json")
    assert json.loads(out) == [item for item in listed if item["name"] == "tlsf"]


def test_an_unknown_name_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(monkeypatch, capsys, "tslf")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "did you mean tlsf" in err


def test_the_command_derives_special_pools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trace_of(tmp_path, [40, 40, 1500, 1500, 200])
    code, out, _ = run(monkeypatch, capsys, "wifi-special-pools", "--from-profile", str(path))
    assert code == 0
    recipe = Recipe.parse(out)
    assert isinstance(recipe.pools[0], Fixed)
    assert (recipe.pools[0].sizes, recipe.pools[0].counts) == ((40, 200, 1500), (2, 1, 2)), "each at its own peak"
    assert "40, 200, 1500" in recipe.about
    pools = tmp_path / "pools.toml"
    pools.write_text(out)
    names = [path.name for path in hw.generate(str(pools), tmp_path / "c", prefix="wifi", behind="malloc")]
    assert "wifi_behind.c" in names, "it is taken as printed"
    code, _, err = run(monkeypatch, capsys, "tlsf", "--from-profile", str(path))
    assert code == 2
    assert "wifi-special-pools" in err


def test_every_allocator_has_a_measured_code_size() -> None:
    sizes = {recipe.name: facts(recipe).code_bytes for recipe in zoo.recipes()}
    assert all(size is not None and 50 < size < 3500 for size in sizes.values()), sizes
    assert facts(zoo.load("tlsf").model_copy(update={"align": 8})).code_bytes is None
