"""Measuring on the target: emulators and compilers against each other, known counts, the host against the target."""

from __future__ import annotations

import json
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked_commands import HEAPWRIGHT
from metric_values import known
from platform_builds import CORTEX_M3, NANO, NOSYS, PICOLIBC, cross_compiler
from run_length import brief
from tool_requirements import target

from heapwright._heaps.heaps import resolve_on_target
from heapwright._measure.boards import feed, qemu_backend, unicorn_backend
from heapwright._measure.boards.compilers import find_compiler
from heapwright._measure.boards.cpus import CPUS
from heapwright._measure.boards.image import Workshop
from heapwright._measure.boards.measure import Session, calls_by_kind, find_backend, measure
from heapwright._measure.boards.objectives import code_bytes
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._recipes.zoo.facts import facts
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC

pytestmark = pytest.mark.usefixtures("forks")

ON_BOTH = [name for name, cpu in CPUS.items() if cpu.unicorn_model]
WITH_ZIG = brief(("cortex-m3", "rv32imac"), tuple(ON_BOTH))
"""For each other processor zig compiles its library, which takes longer than the test."""
CORES = [(cpu, "gcc") for cpu in ON_BOTH] + [(cpu, "zig") for cpu in WITH_ZIG]
HEAPS = ("tlsf", "victim-bins", "kingsley", "drr-proposed", "newlib-nano")


@pytest.fixture(scope="session")
def random_trace() -> Trace:
    """Objects of 8 to 600 bytes, some resized, that live for 1 to 400 calls: fifty generations of them, or more."""
    length = brief(20_000, 100_000)
    random = np.random.default_rng(4)
    calls: list[tuple[int, int, int]] = []
    ends: list[tuple[int, int]] = []
    number = 0
    while len(calls) < length:
        if ends and ends[0][0] <= len(calls):
            calls.append((FREE, ends.pop(0)[1], 0))
            continue
        calls.append((MALLOC, number, int(random.integers(8, 600))))
        ends.append((len(calls) + int(random.integers(1, 400)), number))
        ends.sort()
        if number % 50 == 0:
            calls.append((REALLOC, number, int(random.integers(8, 900))))
        number += 1
    op, id, size = zip(*calls[:length], strict=True)
    return Trace.from_columns(op=op, id=id, size=size, name="random")


def both(heap: str, cpu: str, compiler: str, trace: Trace) -> tuple[feed.BoardRun, feed.BoardRun]:
    with Workshop(resolve_on_target(heap), find_compiler(CPUS[cpu], compiler)) as workshop:
        image = workshop.image()
        given = feed.Input.of(trace, CPUS[cpu], 1 << 20, 4096)
        return unicorn_backend.run(image, given), qemu_backend.run(image, given)


def measured(
    heap: str | Recipe,
    trace: Trace,
    cpu: str = "cortex-m3",
    arena: int | None = None,
    compiler: str | None = None,
) -> dict[str, Any]:
    """What `measure` reports, with code bytes at the level that runs alone."""
    given = resolve_on_target(heap) if isinstance(heap, str) else heap
    return Session(cpu, "unicorn", compiler, arena=arena).measure(given, [trace], ["Os"])[0]


@pytest.mark.parametrize(("cpu", "compiler"), CORES)
def test_emulators_agree_on_every_call(cpu: str, compiler: str, random_trace: Trace) -> None:
    target(cpu, compiler, "unicorn", "qemu")
    unicorn, qemu = both("tlsf", cpu, compiler, random_trace)
    assert len(unicorn.performed) == len(random_trace)
    for key in ("performed", "refused", "arena"):
        np.testing.assert_array_equal(getattr(unicorn, key), getattr(qemu, key))
    np.testing.assert_array_equal(unicorn.counts["instructions"], qemu.counts["instructions"])
    assert [key for key, counts in qemu.counts.items() if counts is not None] == ["instructions"]


def test_three_runs_are_identical(random_trace: Trace) -> None:
    target("cortex-m3", None, "unicorn")
    first, *others = (measured("victim-bins", random_trace) for _ in range(3))
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("cpu", "name"),
    [
        (cpu, name)
        for cpu in ON_BOTH
        for name in (HEAPS if cpu in ("cortex-m3", "cortex-m0plus", "rv32imac") else HEAPS[:1])
    ],
)
def test_metadata_on_the_target_is_the_hosts(cpu: str, name: str, random_trace: Trace) -> None:
    target(cpu, None, "unicorn")
    result = measured(name, random_trace, cpu)
    output = result["prediction"]
    assert output["metadata_equal"] and output["metadata_bytes"] > 100
    assert 0.5 < output["ratio"] < 2.5
    assert (result["note"] is None) == (cpu != "cortex-m0plus")


def test_a_core_that_one_emulator_has_is_measured_on_that(random_trace: Trace) -> None:
    target("cortex-m55", None, "qemu")
    trace = Trace.from_columns(
        op=random_trace.op[:2000], id=random_trace.id[:2000], size=random_trace.size[:2000], name="random"
    )
    result, older = (
        Session(cpu, "qemu").measure(resolve_on_target("tlsf"), [trace], ["Os"])[0]
        for cpu in ("cortex-m55", "cortex-m3")
    )
    assert result["prediction"]["metadata_equal"] and result["note"] is None
    assert result["calls"]["malloc"]["loads_mean"] is None
    totals = [sum(item["calls"][kind]["instructions_mean"] for kind in ("malloc", "free")) for item in (result, older)]
    assert 0.9 * totals[1] < totals[0] <= totals[1]
    if find_compiler(CPUS["cortex-m55"]).kind == "gcc":
        assert totals[0] < totals[1], "a loop and a choice in one instruction each, which zig does not use"
    with pytest.raises(HeapwrightError, match=r"cortex-m55 is emulated by qemu alone; apt-get install"):
        find_backend(CPUS["cortex-m55"], "unicorn")


@pytest.mark.parametrize(
    ("cpu", "compiler", "most"),
    [
        ("cortex-m0plus", "gcc", (155, 258)),
        ("rv32imac", "gcc", (150, 220)),
        ("cortex-m0plus", "zig", (172, 235)),
        ("rv32imac", "zig", (132, 193)),
    ],
)
def test_the_dearest_malloc_where_no_instruction_counts_bits(
    cpu: str, compiler: str, most: tuple[int, int], random_trace: Trace
) -> None:
    """Compilers' own functions for it make gcc's 175 and 312, 155 and 244."""
    target(cpu, compiler, "unicorn")
    for name, bound in zip(("half-fit", "tlsf"), most, strict=True):
        result = measured(name, random_trace, cpu, compiler=compiler)
        assert result["calls"]["malloc"]["instructions_max"] <= bound


@pytest.mark.parametrize(("compiler", "malloc", "free"), [("gcc", 32, 26), ("zig", 29, 31)])
def test_instructions_of_sixteen_counted_classes(compiler: str, malloc: int, free: int) -> None:
    """One look finds the class of a size, and one that of an address, or two where a step has the end of a class. The
    longest malloc takes a block that was never used."""
    target("cortex-m3", compiler, "unicorn")
    sizes = [16 * place for place in range(1, 16)] + [1000]
    pools = [{"kind": "fixed", "sizes": sizes, "counts": [20] * 16}, {"kind": "general"}]
    rows = [(op, of, size) for of, size in enumerate(sizes) for op in (MALLOC, FREE)] * 2
    op, id, size = zip(*rows, strict=True)
    trace = Trace.from_columns(op=op, id=id, size=size, name="each")
    calls = measured(Recipe.from_dict({"pool": pools}), trace, compiler=compiler)["calls"]
    assert calls["malloc"]["instructions_max"] <= malloc
    assert calls["free"]["instructions_max"] <= free


def test_masked_metadata_on_the_target_is_the_hosts_but_for_its_secret(random_trace: Trace) -> None:
    """Firmware makes its secret of the heap's address: that costs instructions, and stands in every link."""
    target("cortex-m3", None, "unicorn")
    levels = {
        level: measured(zoo.load("tlsf").model_copy(update={"checks": level}), random_trace)
        for level in ("neighbours", "full")
    }
    assert all(result["prediction"]["metadata_equal"] for result in levels.values())
    output = {level: result["prediction"]["measured_loads"] for level, result in levels.items()}
    assert output["full"] > output["neighbours"]


def test_refused_objects_are_skipped_as_on_the_host(random_trace: Trace) -> None:
    from heapwright._replay.replay import replay

    target("cortex-m3", None, "unicorn")
    arena = 40_000
    result = measured("tlsf", random_trace, arena=arena)
    assert result["failed"] == known(replay(random_trace, zoo.load("tlsf"), arena=arena)["failed"]) > 0
    assert result["prediction"]["metadata_equal"]


KNOWN = {
    ("newlib-nano", "m3_fifo_2000"): ((48.7, 111, 21.0), (46.5, 57, 21.1)),
    ("newlib", "m3_fifo_2000"): ((87.2, 488, 36.1), (55.3, 84, 29.1)),
    ("picolibc", "m3_fifo_2000"): ((2638, 6172, 672), (36.9, 80, 18.8)),
    ("newlib-nano", "m3_mixed_100000"): ((180.6, 547, None), (158.3, 472, None)),
    ("newlib", "m3_mixed_100000"): ((68.8, 645, None), (55.5, 95, None)),
}
"""Mean and maximum of instructions and mean accesses of malloc and free, with Debian 12's libraries."""
LINKED = {"newlib-nano": (NANO, NOSYS), "newlib": (NOSYS,), "picolibc": PICOLIBC}


@pytest.mark.parametrize(("library", "trace"), KNOWN)
def test_known_counts_of_c_libraries(library: str, trace: str, shared_data: Path) -> None:
    target("cortex-m3", "gcc", "unicorn")
    cross_compiler((*CORTEX_M3, *LINKED[library]))
    result = measure(resolve_on_target(f"lib:{library}"), Trace.read(shared_data / "synthetic" / f"{trace}.parquet"))
    for kind, (mean, maximum, accesses) in zip(("malloc", "free"), KNOWN[library, trace], strict=True):
        calls = result["calls"][kind]
        assert calls["instructions_mean"] == pytest.approx(mean, rel=0.01)
        assert calls["instructions_max"] == pytest.approx(maximum, rel=0.01)
        if accesses is not None:
            assert calls["accesses_mean"] == pytest.approx(accesses, rel=0.01)


HEAP_FILE = """
#include <stddef.h>
#include <stdint.h>
static unsigned char *next, *end;
int heap_init(void *arena, size_t bytes) { next = arena; end = next + bytes; return 1; }
void *heap_malloc(size_t n)
{
    unsigned char *p = next;
    if (n > (size_t)(end - next)) { return NULL; }
    *(volatile uint32_t *)p = (uint32_t)n;
    next += (n + 7u) & ~(size_t)7u;
    return p;
}
void heap_free(void *p) { (void)p; }
"""


def test_a_heap_of_ones_own(tmp_path: Path) -> None:
    target("cortex-m3", "gcc", "unicorn")
    source = tmp_path / "bump.c"
    source.write_text(HEAP_FILE)
    trace = Trace.from_columns(op=[0, 0, 2, 3], id=[1, 2, 2, 1], size=[16, 24, 99, 0], name="four")
    result = measure(resolve_on_target(str(source)), trace, compiler="gcc")
    malloc, free = result["calls"]["malloc"], result["calls"]["free"]
    assert (malloc["count"], malloc["arena_stores_mean"], malloc["arena_loads_mean"]) == (2, 1, 0)
    assert (free["instructions_max"], free["accesses_max"], free["stack_bytes_max"]) == (1, 0, 0)
    assert result["calls"]["realloc"]["refused"] == 1
    assert result["prediction"] is None and result["footprint_bytes"] is None
    assert 20 < result["code_bytes"]["malloc"] < 80 and 2 <= result["code_bytes"]["free"] <= 4


def test_python_hooks_count_what_the_native_ones_do() -> None:
    """An independent counter: Python hooks, lengths of instructions by the manual's rule."""
    target("cortex-m3", "gcc", "unicorn")
    import unicorn

    trace = Trace.from_columns(op=[0, 0, 3, 0, 3], id=[1, 2, 1, 3, 2], size=[40, 1500, 0, 40, 0])
    with Workshop(resolve_on_target("tlsf"), find_compiler(CPUS["cortex-m3"], "gcc")) as workshop:
        machine = unicorn_backend._Machine(workshop.image(), feed.Input.of(trace, CPUS["cortex-m3"], 65536), True)
    counted: list[list[int]] = []
    begin, end = machine.counter.begin, machine.counter.end
    inside = False

    def block(core: Any, address: int, size: int, _: object) -> None:
        nonlocal inside
        if address in (begin, end):
            inside = address == begin
            if inside:
                counted.append([0, 0, 0])
        elif inside:
            halves = np.frombuffer(core.mem_read(address, size), "<u2")
            at = 0
            while at < len(halves):
                at += 2 if halves[at] >> 11 >= 0x1D else 1
                counted[-1][0] += 1

    def access(_: object, kind: int, *__: object) -> None:
        if inside:
            counted[-1][1 if kind == unicorn.UC_MEM_READ else 2] += 1

    machine.core.hook_add(unicorn.UC_HOOK_BLOCK, block)
    machine.core.hook_add(unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, access)
    machine.emulate()
    np.testing.assert_array_equal(machine.calls[:, :3], counted)
    assert len(counted) == len(trace) + feed.STUBS


def test_cycles_of_the_stub_are_the_manuals() -> None:
    """bx lr: one cycle, and 1 to 3 for the pipeline; nine nops more are nine cycles."""
    target("cortex-m3", "gcc", "unicorn")
    trace = Trace.from_columns(op=[0], id=[1], size=[40])
    with Workshop(resolve_on_target("tlsf"), find_compiler(CPUS["cortex-m3"], "gcc")) as workshop:
        machine = unicorn_backend._Machine(workshop.image(), feed.Input.of(trace, CPUS["cortex-m3"], 65536), True)
        machine.emulate()
    assert machine.calls[:2, 6:].tolist() == [[2, 3, 4], [11, 12, 13]]


def test_an_emulator_that_counts_wrongly_is_refused() -> None:
    run = feed.BoardRun(np.zeros(0, np.int64), np.zeros(0, bool), {}, (1, 10, 14), 0x5A, True, 0, np.zeros(0, np.uint8))
    with pytest.raises(HeapwrightError, match=r"self-test failed.*pip install 'unicorn>=2.1.3,<2.1.4'"):
        feed.check_stubs(run, CPUS["cortex-m3"], "unicorn 2.1.4", unicorn_backend.REMEDY)


def test_missing_tools_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for compiler in (None, "gcc", "zig"):
        with pytest.raises(HeapwrightError, match=r"pip install|apt-get install --no-install-recommends gcc-arm"):
            find_compiler(CPUS["cortex-m3"], compiler)
    for backend in (None, "unicorn", "qemu"):
        with pytest.raises(HeapwrightError, match=r"pip install|apt-get install --no-install-recommends qemu"):
            find_backend(CPUS["cortex-m3"], backend)


def test_phases_are_told_apart() -> None:
    target("cortex-m3", None, "unicorn")
    trace = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[8, 8, 0], phase=[0, 1, 1], phases=("boot", "steady"))
    result = measured("tlsf", trace)
    assert result["phases"]["boot"]["malloc"]["count"] == result["phases"]["steady"]["free"]["count"] == 1
    assert result["phases"]["boot"]["free"]["instructions_mean"] is None


def test_statistics_of_known_counts() -> None:
    trace = Trace.from_columns(op=[0, 0, 0, 3], id=[1, 2, 3, 1], size=[8] * 4)
    counts = dict.fromkeys(feed.COUNTS) | {"instructions": np.array([10, 30, 20, 5])}
    run = feed.BoardRun(
        np.arange(4), np.array([False, True, False, False]), counts, (), 0, True, 0, np.zeros(0, np.uint8)
    )
    malloc = calls_by_kind(run, trace)["malloc"]
    assert (malloc["instructions_mean"], malloc["instructions_median"], malloc["instructions_p999"]) == (20, 20, 30)
    assert (malloc["instructions_max"], malloc["instructions_max_call"], malloc["refused"]) == (30, 1, 1)
    assert malloc["loads_mean"] is None and malloc["cycles"] is None
    assert malloc["instructions_histogram"] == [[10, 1], [20, 1], [30, 1]]


def test_command_prints_the_documented_json(tmp_path: Path) -> None:
    target("cortex-m3", None, "unicorn")
    from heapwright._traces.trace import Trace as Table

    path = tmp_path / "small.parquet"
    Table.from_columns(op=[0, 3], id=[1, 1], size=[100, 0], ts_us=[0, 1]).write(path)
    command = [HEAPWRIGHT, "measure", "tlsf", str(path), "--json"]
    (result,) = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert {"cpu", "compiler", "backend", "code_bytes", "calls"} <= set(result)
    assert {"malloc", "free", "realloc", "total", "O0", "O2", "O3"} <= set(result["code_bytes"])
    keys = {"count", "instructions_mean", "instructions_p999", "instructions_max", "accesses_mean"}
    assert keys <= set(result["calls"]["malloc"])
    bad = subprocess.run([*command[:2], "lib:glibc", str(path)], capture_output=True, text=True)
    assert bad.returncode == 1 and bad.stderr.count("\n") == 1 and "newlib-nano" in bad.stderr


def test_recipe_objects_are_measured_as_files_are() -> None:
    target("cortex-m3", None, "unicorn")
    trace = Trace.from_columns(op=[0, 3], id=[1, 1], size=[100, 0])
    recipe = Recipe.parse('name = "x"\n[[pool]]\nkind = "general"\n', "x")
    assert measure(recipe, trace)["heap"] == "x"


@pytest.fixture
def small_zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three recipes are enough to be distinguished; each takes a compile."""
    monkeypatch.setattr(zoo, "names", lambda: ["kingsley", "tlsf", "victim-bins"])


@pytest.fixture
def small_study(tmp_path: Path, random_trace: Trace, small_zoo: None) -> Path:
    from keyword_explorations import explore

    from heapwright._explore.space import Space

    path = tmp_path / "trace.parquet"
    columns = {key: getattr(random_trace, key)[:4000] for key in ("op", "id", "size")}
    Trace.from_columns(**columns, ts_us=np.arange(4000)).write(path)
    explore([Trace.read(path)], Space([]), study_path=tmp_path / "study.duckdb", stress_test=False)
    return tmp_path / "study.duckdb"


def test_a_measured_front_is_ranked_by_instructions(small_study: Path) -> None:
    target("cortex-m3", None, "unicorn")
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.comparison import side_by_side
    from heapwright._studies.decision import decide
    from heapwright._studies.measured_front import measure_front

    results = {item["heap"]: item for item in measure_front(small_study)}
    with Analysis.open(small_study) as study:
        front = study.front(("instructions_pair_mean", "footprint_bytes", "code_bytes"))
        tlsf = study.candidate("tlsf")
        details = study.measured()
        picks = [study.pick(how, study.objectives) for how in ("balanced", "smallest", "fastest")]
        output = {row.words: row.unit for row in side_by_side(decide(study)).rows}
    assert {item.label for item in [*front, *picks]} <= set(results) and front
    assert output["malloc and free"] == output["worst-case malloc"] == "instructions" and "code" in output
    calls = results["tlsf"]["calls"]
    pair = calls["malloc"]["instructions_mean"] + calls["free"]["instructions_mean"]
    assert tlsf.metrics["instructions_pair_mean"] == pytest.approx(pair)
    assert tlsf.metrics["code_bytes"] == results["tlsf"]["code_bytes"]["total"]
    assert [detail for *_, id, _, detail in details if id == tlsf.id] == [results["tlsf"]]
    measure_front(small_study, level="O2")
    with Analysis.open(small_study) as study:
        assert len(study.measured()) == 2 * len(details)
        again = study.candidate("tlsf")
    key = "instructions_malloc_mean"  # gcc makes them fewer, zig more
    assert known(again.metrics[key]) != known(tlsf.metrics[key])


def test_heaps_beside_a_front_stand_in_the_report(small_study: Path, tmp_path: Path) -> None:
    target("cortex-m3", None, "unicorn")
    from heapwright._report import write_report
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.measured_front import measure_front

    source = tmp_path / "bump.c"
    source.write_text(HEAP_FILE)
    results = {item["heap"]: item for item in measure_front(small_study, beside=[resolve_on_target(str(source))])}
    with Analysis.open(small_study) as study:
        assert study.combined.find(str(source)) is None
    write_report(small_study, tmp_path / "report.html", plots=tmp_path / "plots")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    part = text[text.index("On the target: trace") :]
    part = part[: part.index("</section>")]
    for heap in ("tlsf", str(source)):
        calls = results[heap]["calls"]["malloc"]
        row = part[part.index(heap) :]
        assert f"<td>{calls['instructions_max']:,}</td>" in row[: row.index("</tr>")]
    assert "equals the host&#39;s byte for byte" in part
    drawn = {path.name for path in (tmp_path / "plots").glob("*.svg")}
    assert {"instructions-malloc-1-trace.svg", "instructions-free-1-trace.svg", "trade-off-target.svg"} <= drawn


def test_code_bytes_as_an_objective(tmp_path: Path, small_zoo: None) -> None:
    target("cortex-m3", "gcc")
    from keyword_explorations import explore

    from heapwright._explore.space import Space
    from heapwright._studies.analysis import Analysis

    trace = Trace.from_columns(op=[0, 0, 3], id=[1, 2, 1], size=[8, 100, 0], name="three")
    explore([trace], Space([]), "footprint_bytes,code_bytes", tmp_path / "study.duckdb", stress_test=False)
    with Analysis.open(tmp_path / "study.duckdb") as study:
        sizes = {item.candidate.label: item.candidate.metrics["code_bytes"] for item in study.zoo_standings()}
    assert sizes["tlsf@4"] == measure(resolve_on_target("tlsf"), trace, compiler="gcc")["code_bytes"]["total"]
    assert known(sizes["kingsley"]) < known(sizes["victim-bins"])


@pytest.mark.parametrize("name", ["binary-buddy", "variable-pool", "st-compact-memmgr", "contiki-mmem"])
def test_other_kinds_of_pools_leave_the_hosts_metadata_too(name: str, random_trace: Trace) -> None:
    target("cortex-m3", None, "unicorn")
    trace = Trace.from_columns(**{key: getattr(random_trace, key)[:1500] for key in ("op", "id", "size")})
    result = measured(name, trace)
    assert result["prediction"]["metadata_equal"] and not result["failed"]
    assert {"malloc", "realloc", "free"} == set(result["calls"])
    assert result["code_bytes"]["malloc"] < result["code_bytes"]["total"]


def test_kinds_of_calls_are_told_apart() -> None:
    """A calloc counts as the malloc it starts with, and once more whole, with clearing."""
    target("cortex-m3", None, "unicorn")
    op, size, align = [0, 1, 0, 2, 3], [400, 400, 400, 500, 0], [0, 0, 64, 0, 0]
    trace = Trace.from_columns(op=op, id=[1, 2, 3, 1, 2], size=size, align=align)
    result = measured("tlsf", trace)
    calls = result["calls"]
    assert {kind: item["count"] for kind, item in calls.items()} == {
        "malloc": 2, "calloc": 1, "aligned": 1, "realloc": 1, "free": 1
    }  # fmt: skip
    assert calls["calloc"]["stores_mean"] >= calls["malloc"]["stores_mean"] + 100
    assert result["prediction"]["metadata_equal"]


@pytest.mark.parametrize("name", ["kingsley", "tlsf", "variable-pool"])
def test_the_code_size_is_that_of_today(name: str) -> None:
    """bench/zoo_code_bytes.py writes it; another release of the compiler may differ a little."""
    target("cortex-m3", "gcc")
    version = find_compiler(CPUS["cortex-m3"], "gcc").version
    written = (
        (resources.files("heapwright._recipes.zoo") / "code_bytes.csv").read_text(encoding="utf-8").splitlines()[0]
    )
    stored = facts(zoo.load(name)).code_bytes
    assert code_bytes(zoo.load(name), compiler="gcc") == pytest.approx(stored, rel=0 if version in written else 0.1)
