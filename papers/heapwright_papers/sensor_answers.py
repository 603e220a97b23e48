"""What becomes of each statement of the paper about sensor nodes, from what the page ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

import numpy as np

from heapwright import zoo
from heapwright.recipes.pools import Fixed
from heapwright.traces.validation import FREE
from heapwright_papers.measuring import CPU, replayed
from heapwright_papers.page import Page, percent
from heapwright_papers.sensor_runs import (
    FIVE,
    FIXED_PLACE,
    HEAPLIB,
    HOLES,
    KINDS,
    LEVELS,
    MANTIS,
    MEMMGR,
    MMEM,
    MOVING,
    RECORDED,
    SOS,
    ST,
    ST_COMPACT,
    TABLE_1,
    UNIT,
    Results,
    allocation_bytes,
    descriptor_bytes,
    heaps,
    served,
    uses_holes,
)
from heapwright_papers.verdicts import HOLDS, SHOWN, Cause, Kind, Verdict, fails, judge, not_tested, within_noise

NEAR = 0.1
"""How far a number may be from the paper's."""
COMPARABLE = 2
"""The paper gives no number for "comparable": within a factor of two."""
LEAST_LESS, MOST_LESS = 256, 5376
"""Bytes that ST_MEMMGR needs less than heapLib and memmgr."""
SOS_SIZES = [16] * 32 + [32] * 16 + [128] * 4
FRAMES = {"st-memmgr-1": 32, "st-memmgr-2": 64, "st-memmgr": 128, "st-memmgr-8": 256}
"""KB that the paper says each frame reaches, by the name of its recipe."""
NO_TOOLS = not_tested("no cross compiler or emulator on this machine")


def answer(page: Page, results: Results) -> None:
    """A verdict on every statement of the page that a run decides."""
    _descriptors(page)
    _sos(page, results)
    _others(page, results)
    _fragmentation(page, results)
    _growth(page, results)
    _times(page, results)
    _memory(page, results)
    _codes(page, results)


def code_bytes(results: Results, heap: str, level: str) -> int | None:
    """Code and constants of malloc and free; None without a compiler."""
    sizes = results.codes[heap]
    return None if sizes is None else int(sizes[level].text + sizes[level].data)


# ---- descriptors -----------------------------------------------------------------------------------------------------


def _descriptors(page: Page) -> None:
    recipes = {MANTIS: zoo("mantisos"), **heaps()}
    ours = {heap: descriptor_bytes(recipes[heap]) for heap in TABLE_1}
    told = ", ".join(f"{heap} {size}" for heap, size in ours.items())
    page.verdict("sensor-table-1", f"{told} B", _met(ours == {heap: size for heap, (size, _) in TABLE_1.items()}))
    loses = {heap: not uses_holes(recipes[heap]) for heap in TABLE_1}
    told = f"refused behind {HOLES[-1]} holes that lie apart: {', '.join(heap for heap in TABLE_1 if loses[heap])}"
    page.verdict("sensor-table-1-external", told, _met(loses == {heap: lost for heap, (_, lost) in TABLE_1.items()}))
    page.verdict("sensor-figure-4", f"{8 * ours[ST]} bits, measured", _met(8 * ours[ST] == 16))
    page.verdict("sensor-figure-5", f"{8 * ours[ST_COMPACT]} bits, measured", _met(8 * ours[ST_COMPACT] == 32))
    reach = {name: (zoo(name).reach or 0) / 1024 for name in FRAMES}
    page.verdict(
        "sensor-frames",
        ", ".join(f"{size:.0f}" for size in reach.values()) + " KB, what the recipes reach",
        _met(all(abs(reach[name] / size - 1) < NEAR for name, size in FRAMES.items())),
    )
    compact = zoo("st-compact-memmgr")
    by_byte, here = (compact.model_copy(update={"align": align}).reach or 0 for align in (1, 2))
    page.verdict(
        "sensor-compact-reach",
        f"{by_byte:,} bytes with distances in bytes; {here:,} with those in half-words, as on this page",
        _met(abs(by_byte / 65536 - 1) < NEAR),
    )
    whole = {heap: allocation_bytes(recipes[heap]) for heap in MOVING}
    saved = 1 - whole[ST_COMPACT] / whole[MMEM]
    page.verdict("sensor-compact-8", f"{whole[ST_COMPACT]} B", _met(whole[ST_COMPACT] == 8))
    told = f"{whole[ST_COMPACT]} and {whole[MMEM]} B: {percent(saved)}"
    page.verdict("sensor-33", told, _met(abs(saved - 0.33) < NEAR * 0.33))
    alone = 1 - ours[ST_COMPACT] / ours[MMEM]
    page.verdict(
        "sensor-33-abstract",
        f"descriptors of {ours[ST_COMPACT]} and {ours[MMEM]} B: {percent(alone)}",
        fails(
            Cause.CONTRADICTION,
            f"Table I has 4 and 12 bytes, {percent(alone)} less; 33 % comes with the pointer of 4 bytes (VI.B)",
        ),
    )


def _met(holds: bool) -> Verdict:
    return judge(holds, fails(Cause.UNEXPLAINED, "the number beside it"))


# ---- SOS, MantisOS, Contiki -----------------------------------------------------------------------------------------


def _sos(page: Page, results: Results) -> None:
    sos = zoo("sos")
    pool = sos.pools[0]
    assert isinstance(pool, Fixed)
    most, more = served(SOS_SIZES, sos), served([*SOS_SIZES, 16, 32, 128], sos)
    page.verdict(
        "sensor-sos-blocks",
        f"{most} blocks of {sum(SOS_SIZES):,} B are served, {len(SOS_SIZES) + 3 - more} more of the same sizes refused",
        _met(most == more == len(SOS_SIZES) and sum(SOS_SIZES) == 1536),
    )
    calls = results.grown[SOS]
    told = f"{max(calls['malloc'])} accesses a malloc, {max(calls['free'])} a free, behind {_counts()} holes alike"
    constant = all(len(set(of)) == 1 for of in calls.values())
    page.verdict("sensor-sos-constant", told, _met(constant))
    page.verdict(
        "sensor-sos-tight",
        f"{told}; no header, {sum(SOS_SIZES):,} of {_footprint(sos):,} B are blocks",
        _met(constant and sum(SOS_SIZES) / _footprint(sos) > 1 - NEAR),
    )
    fourth, fifth = served([128] * 4, sos), served([128] * 5, sos)
    free = sum(SOS_SIZES) - 4 * 128
    page.verdict(
        "sensor-sos-fifth", f"{fifth} of 5 are served, with {free:,} B free", _met(fourth == fifth == 4 and free > 128)
    )
    sizes = _requests(results)
    sizes = sizes[sizes <= max(pool.sizes)]
    blocks = np.array(pool.sizes)[np.searchsorted(pool.sizes, sizes)]
    wasted = float(blocks.sum() / sizes.sum() - 1)
    told = f"{percent(wasted)} of the requested bytes, over all random requests of up to {max(pool.sizes)} B"
    page.verdict("sensor-sos-internal", told, _met(wasted > NEAR))
    refused = {name: _refused(results, name) for name in results.traces}
    page.verdict(
        "sensor-sos-inflexible",
        f"SOS refuses {_span([percent(one) for one in sorted(refused.values())])} of the requests of the traces; "
        "MantisOS and Contiki serve all",
        _met(all(refused.values()) and all(_serves(results, heap) for heap in (MANTIS, MMEM))),
    )


def _requests(results: Results) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The sizes of all random requests."""
    random = [trace for name in _random(results) for trace in results.traces[name]]
    return np.concatenate([trace.size[trace.op != FREE] for trace in random]).astype(np.int64)


def _footprint(recipe: object) -> int:
    from heapwright_papers.sensor_runs import holes

    return int(replayed(holes(HOLES[-1]), recipe)["footprint_bytes"] or 0)  # type: ignore[arg-type]


def _refused(results: Results, name: str) -> float:
    trace = results.traces[name][0]
    return int(replayed(trace, zoo("sos"))["failed"] or 0) / int((trace.op != FREE).sum())


def _serves(results: Results, heap: str) -> bool:
    return all(one.memory is not None for of in results.found[heap].values() for one in of)


def _others(page: Page, results: Results) -> None:
    needed = [min(results.memory(heap, name)) for heap in FIVE for name in results.traces]
    told = f"the traces of this page need {min(needed) / 1024:.0f} to {max(needed) / 1024:.0f} KB"
    page.verdict("sensor-ram", told, Verdict(Kind.SET_UP))
    recipes = {MANTIS: zoo("mantisos"), MMEM: zoo("contiki-mmem"), SOS: zoo("sos"), ST: heaps()[ST]}
    bytes_ = {heap: descriptor_bytes(recipe) if heap != SOS else 0 for heap, recipe in recipes.items()}
    page.verdict(
        "sensor-mantis-contiki-overhead",
        f"{bytes_[MANTIS]} and {bytes_[MMEM]} B an allocation; SOS {bytes_[SOS]}, ST_MEMMGR {bytes_[ST]}",
        _met(min(bytes_[MANTIS], bytes_[MMEM]) > bytes_[ST]),
    )
    spread = {heap: _spread(results, heap) for heap in (MANTIS, MMEM)}
    if any(one is None for one in spread.values()):
        page.verdict("sensor-mantis-contiki-variable", "–", NO_TOOLS)
    else:
        told = "; ".join(f"{heap}: {one}" for heap, one in spread.items())
        page.verdict(
            "sensor-mantis-contiki-variable",
            f"instructions of a call on average, and at most: {told}",
            _met(
                all(
                    (results.most(heap, kind) or 0) > 2 * _mean(results, heap, kind)
                    for heap in spread
                    for kind in KINDS
                )
            ),
        )


def _spread(results: Results, heap: str) -> str | None:
    if results.most(heap, "malloc") is None:
        return None
    return ", ".join(f"{kind} {_mean(results, heap, kind):,.0f}, {results.most(heap, kind):,}" for kind in KINDS)


def _mean(results: Results, heap: str, kind: str) -> float:
    return mean(results.instructions(heap, name, kind) or 0.0 for name in results.traces)


def _fragmentation(page: Page, results: Results) -> None:
    external = {heap: [one.external for of in results.found[heap].values() for one in of] for heap in (ST, *MOVING)}
    page.verdict(
        "sensor-st-fragments",
        f"{min(external[ST]):,} to {max(external[ST]):,} B lost between blocks when the footprint is largest",
        _met(max(external[ST]) > UNIT),
    )
    page.verdict(
        "sensor-compact-none",
        f"at most {max(external[ST_COMPACT]):,} B lost between blocks on any trace",
        _met(max(external[ST_COMPACT]) == 0),
    )


# ---- time ------------------------------------------------------------------------------------------------------------


def _growth(page: Page, results: Results) -> None:
    for id_, heap in (("sensor-mantis-linear", MANTIS), ("sensor-st-linear", ST)):
        calls = results.grown[heap]["malloc"]
        steps = [(after - before) / (more - less) for (before, after), (less, more) in _steps(calls)]
        told = f"{_list(calls)} accesses behind {_counts()} holes: {steps[0]:g} more for each"
        page.verdict(id_, told, _met(steps[0] > 0 and max(steps) <= (1 + NEAR) * min(steps)))
    calls, most = results.grown[ST]["free"], results.most(ST, "free")
    told = f"{_list(calls)} accesses behind {_counts()} holes"
    if most is not None:
        told += f"; {most} instructions on any trace at most"
    page.verdict("sensor-st-constant", told, _met(len(set(calls)) == 1))
    growing = {heap: results.grown[heap]["malloc"] for heap in (ST, ST_COMPACT)}
    told = "; ".join(f"{heap}: {_list(of)}" for heap, of in growing.items())
    found = {heap: results.worst[heap].instructions["malloc"] for heap in growing} if results.worst else {}
    if found:
        told += "; worst malloc found: " + ", ".join(f"{value:,}" for value in found.values()) + " instructions"
    page.verdict(
        "sensor-unbounded",
        f"accesses of a malloc behind {_counts()} holes: {told}",
        _met(all(before < after for of in growing.values() for before, after in pairwise(of))),
    )


def _steps(calls: Sequence[int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return list(zip(pairwise(calls), pairwise(HOLES), strict=True))


def _counts() -> str:
    return _list(HOLES)


def _list(values: Iterable[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)


def _times(page: Page, results: Results) -> None:
    ids = [f"sensor-{what}-{kind}" for what in ("memmgr-fast", "st-comparable", "compact-faster") for kind in KINDS]
    if results.most(ST, "free") is None:
        for id_ in ("sensor-figure-6", "sensor-figure-7", *ids, "sensor-similar-speed", "sensor-optimal"):
            page.verdict(id_, "–", NO_TOOLS)
        return
    for number, kind in ((6, "malloc"), (7, "free")):
        page.verdict(f"sensor-figure-{number}", f"instructions of a {kind}, a table and a figure", SHOWN)
        _fastest(page, results, kind)
        _comparable(page, results, kind)
        _faster(page, results, kind)
    both = _ratios(results, ST_COMPACT, MMEM, *KINDS)
    page.verdict(
        "sensor-similar-speed",
        f"{_range(both)} times mmem's instructions for a malloc and a free together",
        judge(
            all(1 / COMPARABLE <= one <= COMPARABLE for one in both),
            fails(
                Cause.CHOICE,
                "the paper does not say when its heap slides; ours does when a request finds no room, "
                f"{1 / max(both):.1f} to {1 / min(both):.1f} times less work than sliding at every free",
            ),
        ),
    )
    slower = _ratios(results, ST, HEAPLIB, *KINDS)
    smaller = [mean(results.memory(ST, name)) / mean(results.memory(HEAPLIB, name)) for name in results.traces]
    page.verdict(
        "sensor-optimal",
        f"ST_MEMMGR against heapLib: {percent(min(smaller))} to {percent(max(smaller))} of the memory, "
        f"{percent(min(slower))} to {percent(max(slower))} of the instructions of a malloc and a free",
        _met(max(slower) <= 1 + NEAR and mean(smaller) < 1),
    )


def _ratios(results: Results, heap: str, other: str, *kinds: str) -> list[float]:
    """Instructions of a call of each kind together, over the other's, on each trace."""
    return [
        sum(results.instructions(heap, name, kind) or 0.0 for kind in kinds)
        / sum(results.instructions(other, name, kind) or 0.0 for kind in kinds)
        for name in results.traces
    ]


def _fastest(page: Page, results: Results, kind: str) -> None:
    values = {heap: {name: results.instructions(heap, name, kind) or 0.0 for name in results.traces} for heap in FIVE}
    best = [name for name in results.traces if values[MEMMGR][name] == min(of[name] for of in values.values())]
    told = f"the least on {len(best)} of {len(results.traces)} traces, {_range(values[MEMMGR].values())} instructions"
    first = _range(values[ST].values())
    page.verdict(
        f"sensor-memmgr-fast-{kind}",
        told,
        judge(
            len(best) == len(results.traces),
            fails(
                Cause.CONTRADICTION,
                f"V.A says that a free of ST_MEMMGR only resets a bit, {first} instructions here; memmgr's looks for "
                "its place in a list",
            ),
        ),
    )


def _comparable(page: Page, results: Results, kind: str) -> None:
    ratios = {other: _ratios(results, ST, other, kind) for other in (HEAPLIB, MMEM)}
    told = ", ".join(f"{_range(of)} times {other}'s" for other, of in ratios.items())
    usual = {other: mean(of) for other, of in ratios.items()}
    why = {
        "malloc": fails(
            Cause.CHOICE,
            "heapLib's source is not to be had: ours reads a packed descriptor of 5 bytes byte by byte, and is "
            f"{1 / usual[HEAPLIB]:.1f} times slower; against mmem it is {usual[MMEM]:.2f}",
        ),
        "free": fails(
            Cause.CONTRADICTION,
            f"V.A says that it only resets a bit: {results.most(ST, kind)} instructions at most, where mmem copies and "
            "heapLib walks",
        ),
    }[kind]
    close = all(1 / COMPARABLE <= one <= COMPARABLE for one in usual.values())
    page.verdict(f"sensor-st-comparable-{kind}", told, judge(close, why))


def _faster(page: Page, results: Results, kind: str) -> None:
    ratios = dict(zip(results.traces, _ratios(results, ST_COMPACT, MMEM, kind), strict=True))
    both = _ratios(results, ST_COMPACT, MMEM, *KINDS)
    why = fails(
        Cause.CHOICE,
        "the paper does not say when its heap slides; ours does in an allocation, and a malloc and a free together "
        f"take {_range(both)} times mmem's",
    )
    for where, names in (("recorded", _recorded(results)), ("random", _random(results))):
        told = f"{_range(ratios[name] for name in names)} times mmem's instructions"
        page.verdict(
            f"sensor-compact-faster-{kind}",
            told,
            judge(all(ratios[name] < 1 for name in names), why),
            f"{where} traces",
        )


def _range(values: Iterable[float]) -> str:
    return _span([f"{value:.2g}" if value < 10 else f"{value:,.0f}" for value in sorted(values)])


def _span(values: Sequence[str]) -> str:
    """From the first to the last of sorted values."""
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


# ---- memory ----------------------------------------------------------------------------------------------------------


def _recorded(results: Results) -> list[str]:
    return [name for name in results.traces if name in RECORDED]


def _random(results: Results) -> list[str]:
    return [name for name in results.traces if name not in RECORDED]


Sizes = Mapping[str, int]


def _memory(page: Page, results: Results) -> None:
    page.verdict("sensor-figure-8", "a table in the same units, and a figure", SHOWN)
    for on, names in (("recorded traces", _recorded(results)), ("random traces", _random(results))):
        known = [
            {heap: results.found[heap][name][at].memory or 0 for heap in FIVE}
            for name in names
            for at in range(len(results.traces[name]))
        ]
        for id_, statement in _MEMORY.items():
            _on_each(page, id_, statement, known, on)
        _less(page, known, on)
    turned = [
        (one.with_handles or 0) - (other.with_handles or 0)
        for name in results.traces
        for one, other in zip(results.found[MMEM][name], results.found[ST_COMPACT][name], strict=True)
    ]
    page.verdict(
        "sensor-mmem-outside",
        f"with handles counted ST_COMPACT_MEMMGR needs {min(turned):,} to {max(turned):,} B less, on "
        f"{sum(one > 0 for one in turned)} of {len(turned)} traces",
        _met(all(one > 0 for one in turned)),
    )


@dataclass(frozen=True)
class _Least:
    """A statement that the first heaps need less memory than the others; `told` is what is counted."""

    less: tuple[str, ...]
    more: tuple[str, ...]
    told: str = "so"
    ordered: bool = False
    """Whether the others have an order, too, the most first."""
    ties: bool = False
    """Whether it holds for equal sizes, too."""

    def margin(self, of: Sizes) -> int:
        """Bytes by which it holds; below 0 where it does not."""
        margins = [of[more] - of[less] for less in self.less for more in self.more]
        if self.ordered:
            margins += [of[before] - of[after] for before, after in pairwise(self.more)]
        return min(margins)


_MEMORY = {
    "sensor-moving-least": _Least(MOVING, FIXED_PLACE, ties=True),
    "sensor-mmem-better": _Least((MMEM,), (ST_COMPACT,)),
    "sensor-st-least": _Least((ST,), (MEMMGR, HEAPLIB), ties=True),
    "sensor-order": _Least((ST,), (MEMMGR, HEAPLIB), ordered=True),
    "sensor-others-fail": _Least((ST,), (MEMMGR, HEAPLIB), "in the memory that serves ST_MEMMGR both refuse requests"),
}


def _on_each(page: Page, id_: str, statement: _Least, known: Sequence[Sizes], on: str) -> None:
    margins = sorted(map(statement.margin, known))
    count = sum(margin > 0 or (statement.ties and margin == 0) for margin in margins)
    sizes = ", ".join(f"{heap} {mean(of[heap] for of in known):,.0f}" for heap in (*statement.more, *statement.less))
    told = f"{statement.told} on {count} of {len(known)}; {sizes} B on average"
    worst = min(known, key=statement.margin)
    page.verdict(id_, told, _margin(count, margins, len(known), worst), on)


def _margin(count: int, margins: Sequence[int], traces: int, worst: Sizes) -> Verdict:
    spread = f"margins of {margins[0]:,} to {margins[-1]:,} B"
    if count == traces:
        return HOLDS
    if traces > len(RECORDED) and 2 * count > traces:
        return within_noise(f"{traces} traces: {spread}")
    sizes = ", ".join(f"{heap} {size:,}" for heap, size in worst.items())
    return fails(
        Cause.TRAFFIC,
        f"{spread}; where it fails most the trace has {sizes} B: what fragments decides, and whether many small blocks "
        "each have a descriptor of 4 bytes or of 2",
    )


def _less(page: Page, known: Sequence[Sizes], on: str) -> None:
    saved = sorted(of[other] - of[ST] for of in known for other in (HEAPLIB, MEMMGR))
    near = all(
        abs(one / theirs - 1) < NEAR for one, theirs in zip((saved[0], saved[-1]), (LEAST_LESS, MOST_LESS), strict=True)
    )
    inside = sum(LEAST_LESS <= one <= MOST_LESS for one in saved)
    page.verdict(
        "sensor-less",
        f"{saved[0]:,} to {saved[-1]:,} B; {inside} of {len(saved)} differences lie in the paper's range",
        judge(
            near,
            fails(
                Cause.TRAFFIC,
                "they depend on how many blocks live at once and how a trace fragments memory; memmgr alone needs "
                f"{min(of[MEMMGR] - of[ST] for of in known):,} to {max(of[MEMMGR] - of[ST] for of in known):,} B more",
            ),
        ),
        on,
    )


# ---- code ------------------------------------------------------------------------------------------------------------


def _codes(page: Page, results: Results) -> None:
    sizes = {level: {heap: code_bytes(results, heap, level) for heap in FIVE} for level in LEVELS}
    known = {level: {heap: size for heap, size in of.items() if size is not None} for level, of in sizes.items()}
    if any(len(of) < len(FIVE) for of in known.values()):
        for id_ in ("figure-9", "st-largest", "st-shrinks", "st-comparable-code", "compact-least-code"):
            page.verdict(f"sensor-{id_}", "–", NO_TOOLS)
        return
    page.verdict("sensor-figure-9", f"bytes at three levels of gcc for a {CPU}, a table and a figure", SHOWN)
    plain = known["O0"]
    largest = max(plain, key=lambda heap: plain[heap])
    ours = "all five are generated from one core here, which the paper's were not"
    page.verdict(
        "sensor-st-largest",
        f"{plain[ST]:,} B; the largest is {largest} with {plain[largest]:,}",
        judge(largest == ST, fails(Cause.CHOICE, f"{ours}: at -O0 they lie within {_within(plain)} of each other")),
    )
    shares = [known[level][ST] / plain[ST] for level in ("O3", "Os")]
    told = ", ".join(f"{known[level][ST]:,}" for level in LEVELS)
    page.verdict(
        "sensor-st-shrinks",
        f"{told} B at -O0, -O3, -Os: to {percent(shares[0])} and {percent(shares[1])}",
        _met(max(shares) < 1 / COMPARABLE),
    )
    near = [known[level][ST] / mean(known[level].values()) for level in ("O3", "Os")]
    page.verdict(
        "sensor-st-comparable-code",
        f"{percent(near[0])} and {percent(near[1])} of the mean of the five",
        _met(all(1 / COMPARABLE <= one <= COMPARABLE for one in near)),
    )
    least = {level: min(of, key=lambda heap: of[heap]) for level, of in known.items()}
    told = "; ".join(f"-{level}: {heap} with {known[level][heap]:,} B" for level, heap in least.items())
    compact = ", ".join(f"{known[level][ST_COMPACT]:,}" for level in LEVELS)
    page.verdict(
        "sensor-compact-least-code",
        f"{told}; ST_COMPACT_MEMMGR {compact} B",
        judge(
            set(least.values()) == {ST_COMPACT},
            fails(Cause.CHOICE, f"{ours}: at -Os the five lie within {_within(known['Os'])} of each other"),
        ),
    )


def _within(sizes: Sizes) -> str:
    return f"{max(sizes.values()) - min(sizes.values()):,} B"
