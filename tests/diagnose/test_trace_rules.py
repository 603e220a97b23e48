"""Rules on calls: traces with a fault, what is said of them, and the cures that replay measures."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from heapwright._diagnose import diagnose
from heapwright._diagnose.model import Diagnosis
from heapwright._diagnose.trials import at_final_size, large_sizes, with_pool, without
from heapwright._heaps.heaps import RecipeHeap, resolve
from heapwright._recipes.zoo import catalogue
from heapwright._traces.size_uses import size_uses
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC


class Program:
    """A program that is written call by call."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []
        self.made = 0

    def malloc(self, size: int) -> int:
        self.made += 1
        self.calls.append((MALLOC, self.made, size))
        return self.made

    def free(self, number: int) -> None:
        self.calls.append((FREE, number, 0))

    def resize(self, number: int, size: int) -> None:
        self.calls.append((REALLOC, number, size))

    def trace(self) -> Trace:
        op, number, size = zip(*self.calls, strict=True)
        return Trace.from_columns(op=op, id=number, size=size, ts_us=[1000 * at for at in range(len(op))])


def large_buffers_among_small_ones() -> Trace:
    """Connections with two buffers of 16,717 bytes; small objects outlive them and pin the holes."""
    choice, program, kept, connections = random.Random(1), Program(), [], []
    for _ in range(400):
        buffers = [program.malloc(16717)]
        small = [program.malloc(choice.choice([16, 24, 48, 96, 160, 300, 612])) for _ in range(60)]
        buffers.append(program.malloc(16717))
        for number in choice.sample(small, 35):
            small.remove(number)
            program.free(number)
        kept.append(program.malloc(choice.choice([40, 64, 90, 150])))
        if len(kept) > 260:
            program.free(kept.pop(choice.randrange(len(kept))))
        connections.append([*buffers, *small])
        if len(connections) >= 3:
            for number in connections.pop(choice.randrange(3)):
                program.free(number)
    return program.trace()


def first_fit_hole() -> Trace:
    """First fit takes the hole of 16 KB for 8 KB; best fit does not."""
    program = Program()
    large, _, middle, _ = (program.malloc(size) for size in (16384, 64, 8192, 64))
    program.free(large)
    program.free(middle)
    program.malloc(8192)
    program.malloc(16384)
    return program.trace()


def strings() -> Trace:
    choice, program = random.Random(2), Program()
    for turn in range(60):
        text = program.malloc(16)
        for size in range(17, choice.randrange(60, 400)):
            program.resize(text, size)
        if turn % 6 == 0:
            program.malloc(30)
        program.free(text)
    return program.trace()


def packets() -> Trace:
    choice, program = random.Random(9), Program()
    flying: list[int] = []
    for _ in range(2000):
        if flying and (len(flying) >= 12 or choice.random() < 0.45):
            program.free(flying.pop(0))
        else:
            flying.append(program.malloc(1536))
    return program.trace()


def test_large_buffers_that_small_objects_pin_are_cured_by_a_place_of_their_own() -> None:
    result = diagnose([large_buffers_among_small_ones()])
    assert (result.kind, result.confidence) == ("fragmentation", "likely")
    cures = {cure.text: cure for cure in result.finding.cures}
    static = next(cure for text, cure in cures.items() if "static buffers of 16,717 B" in text)
    pool = next(cure for text, cure in cures.items() if text.startswith("a fixed pool of 6 x 16,717 B"))
    assert static.before is not None
    assert static.after is not None
    assert static.after < static.before
    assert pool.after is not None
    assert pool.after <= 1.001 * min(cure.after for cure in cures.values() if cure.after is not None)
    assert "16,717" in result.sentence


def test_the_bytes_of_a_cure_are_those_of_a_replay() -> None:
    trace = large_buffers_among_small_ones()
    cures = {cure.text: cure.after for cure in diagnose([trace]).finding.cures}
    assert cures["best-fit-fast-free in place of freertos-heap4"] == resolve("best-fit-fast-free").fit(trace)
    rest = without(trace, 16717)
    assert rest is not None
    small = resolve("freertos-heap4").fit(rest)
    assert small is not None
    (static,) = (after for text, after in cures.items() if text.startswith("6 static buffers of 16,717 B"))
    assert static == small + 6 * 16720


def test_the_hole_of_first_fit_is_certain_only_if_the_allocator_is_known() -> None:
    assumed, known = diagnose([first_fit_hole()]), diagnose([first_fit_hole()], heaps=[resolve("freertos-heap4")])
    assert (assumed.kind, assumed.confidence) == ("fragmentation", "likely")
    assert known.kind == "fragmentation"
    assert "best-fit-fast-free in place of freertos-heap4 takes 24,736 B" in assumed.sentence
    assert diagnose([first_fit_hole()], heaps=[resolve("best-fit-fast-free")]).kind == "not enough data"


def test_strings_that_grow_are_cured_by_their_final_size() -> None:
    result = diagnose([strings()])
    assert result.kind == "fragmentation"
    assert "60 objects that grow by a few bytes at a time" in result.sentence
    assert any("String.reserve" in cure.text for cure in result.finding.cures)
    assert (at_final_size(strings()).op != REALLOC).all()


def test_a_pool_of_packets_is_counted() -> None:
    result = diagnose([packets()])
    assert result.kind == "nothing wrong"
    assert "at most 12 objects of 1,536 B at once" in result.sentence
    assert [cure.after for cure in result.finding.cures if "in place of the heap" in cure.text] == [12 * 1536]


def leaking() -> Trace:
    choice, program, live = random.Random(3), Program(), []
    for turn in range(3000):
        live.append(program.malloc(choice.choice([20, 44, 120, 600])))
        if len(live) > 80:
            program.free(live.pop(choice.randrange(len(live))))
        if turn % 40 == 0:
            program.malloc(72)
    return program.trace()


def test_a_leak_is_named_first_with_the_time_until_memory_is_used_up() -> None:
    result = diagnose([leaking()])
    assert (result.kind, result.confidence) == ("leak", "likely")
    assert result.sentence.startswith("75 objects of 72 B (5,400 B) are never freed, one in 82 calls")
    assert "16 KB to spare are used up after" in result.sentence
    sized = diagnose([leaking()], arena=64_000)
    assert "what 64,000 B leave to spare is used up after" in sized.sentence
    (cure,) = result.finding.cures
    assert cure.before is not None
    assert cure.after is not None
    assert cure.after < cure.before


def test_a_short_peak_is_a_burst() -> None:
    program = Program()
    for turn in range(2000):
        program.free(program.malloc(100))
        if turn == 1200:
            for number in [program.malloc(800) for _ in range(20)]:
                program.free(number)
    assert diagnose([program.trace()]).kind == "burst"


def test_few_calls_are_not_enough() -> None:
    program = Program()
    program.free(program.malloc(100))
    result = diagnose([program.trace()])
    assert (result.kind, result.confidence) == ("not enough data", "cannot tell")
    assert "1 allocation and 1 free, peak 100 B" in result.sentence


def log(folder: Path, lines: list[str], heap: str | None = None, arena: int | None = None) -> Diagnosis:
    path = folder / "calls.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return diagnose([path], heaps=[resolve(heap)] if heap else (), arena=arena)


def test_requests_that_failed_between_holes_are_fragmentation(tmp_path: Path) -> None:
    lines = [f"hw+ {0x1000 + 512 * at:#x} 500" for at in range(100)]
    lines += [f"hw- {0x1000 + 512 * at:#x}" for at in range(0, 100, 2)]
    lines += ["hw+ 0x1000 500", "hw+ 0x0 2000"]
    result = log(tmp_path, lines)
    assert (result.kind, result.confidence) == ("fragmentation", "likely")
    assert "1 request of 2,000 B failed" in result.sentence
    assert "the largest hole had 524 B" in result.sentence


def test_requests_that_failed_without_a_hole_mean_too_small(tmp_path: Path) -> None:
    lines = [f"hw+ {0x1000 + 512 * at:#x} 500" for at in range(100)] + ["hw- 0x1000", "hw+ 0x1000 500", "hw+ 0 2000"]
    result = log(tmp_path, lines)
    assert (result.kind, result.confidence) == ("too small", "likely")
    assert "52,000 B are live at once" in result.sentence


def test_failures_of_a_trace_are_judged_by_the_size_of_its_heap() -> None:
    trace = Trace.from_columns(op=[MALLOC, MALLOC, FREE], id=[1, 2, 2], size=[1000, 5000, 0], failed=[0, 1, 0])
    assert diagnose([trace]).kind == "too small"
    assert diagnose([trace], arena=2000).kind == "too small"
    assert diagnose([trace], arena=9000).kind == "fragmentation"


def test_what_was_lost_is_no_trace(tmp_path: Path) -> None:
    calls = [f"malloc(100) = {0x1000 + 128 * at:#x}" for at in range(300)]
    result = log(tmp_path, [*calls, "WARNING: Tracer discarded 7002 events between [1] and [2]"])
    assert (result.kind, result.confidence) == ("not enough data", "sure")
    assert result.sentence.startswith("7,002 events were lost")


def test_counters_between_the_calls_are_judged_if_the_calls_are_too_few(tmp_path: Path) -> None:
    lines = []
    for at in range(8):
        lines.append(f"[STATS] total_size = 32760 | free_size = {1772 - 88 * at} | allocated_size = {30936 + 88 * at}")
        lines.append(f"[ALLOC] ptr = {0xF86850 + 88 * at:#x} | length = 77")
    assert log(tmp_path, lines).kind == "leak"


DUMP = """====== Heap Trace: 2 records (100 capacity) ======
    88 bytes (@ 0x3fc92000, Internal) allocated CPU 0 ccount 0x0b000100 caller 0x42010000:0x42020000
    88 bytes (@ 0x3fc92060, Internal) allocated CPU 0 ccount 0x0b000200 caller 0x42010000:0x42020000
====== Heap Trace Summary ======
Mode: Heap Trace {mode}
total allocations: {made}
total frees: {freed}
{end}
"""


@pytest.mark.parametrize(
    ("mode", "made", "freed", "end", "answer"),
    [
        ("Leaks", 400, 398, "=====", ("leak", "cannot tell")),
        (
            "Leaks",
            400,
            300,
            "(NB: Internal Buffer has overflowed, so trace data is incomplete.)",
            ("not enough data", "sure"),
        ),
        ("All", 400, 300, "=====", ("not enough data", "sure")),
        ("All", 2, 0, "=====", ("not enough data", "cannot tell")),
    ],
)
def test_a_dump_of_esp_idf_that_is_no_trace_is_none(
    tmp_path: Path, mode: str, made: int, freed: int, end: str, answer: tuple[str, str]
) -> None:
    result = log(tmp_path, DUMP.format(mode=mode, made=made, freed=freed, end=end).splitlines())
    assert (result.kind, result.confidence) == answer


def test_sizes_are_counted_at_their_most() -> None:
    trace = large_buffers_among_small_ones()
    assert (size_uses(trace)[0].size, size_uses(trace)[0].most) == (16717, 6)
    assert large_sizes(trace)[0].objects == 800
    assert size_uses(strings())[0].size == 30  # what is resized has no size of its own


def test_a_pool_in_front_of_an_allocator_serves_its_size() -> None:
    trace = packets()
    pooled = with_pool(RecipeHeap(catalogue.load("tlsf")), size_uses(trace)[0])
    assert pooled is not None
    assert len(pooled.recipe.pools) == 2
    arena = pooled.fit(trace)
    assert arena is not None
    assert arena < 12 * 1536 + 4096
