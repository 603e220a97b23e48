"""What sections 5 and 6 of Mamagkakis et al. 2006 say of traffic and techniques, held against deficit round robin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heapwright.recipes.pools import Quick
from heapwright.traces.profile import births_and_deaths, locality_of_frees, size_table
from heapwright.traces.validation import FREE
from heapwright_papers.case_claims import NO_TOOLS, known
from heapwright_papers.case_study import (
    PROPOSED,
    REAL,
    SYSTEMS,
    UNSPLIT,
    Run,
    Trial,
    accesses,
    fragmentation,
    millions,
    part,
    try_all,
    with_general,
)
from heapwright_papers.page import Page, percent
from heapwright_papers.traffic import marked
from heapwright_papers.verdicts import SHOWN, Cause, Verdict, fails, judge

if TYPE_CHECKING:
    from heapwright import Recipe, Trace

Sizes = Mapping[str, NDArray[np.int64]]
LISTS = (16, 1476)
"""Sizes of the proposed allocator's freelists: an acknowledgement and a full packet, with 16 bytes beside each."""
AROUND = 100
"""Bytes within which a mode is around the paper's."""
EVEN_WITHIN = 0.1
"""The largest distance from an even distribution, in shares, that is still called even."""
WINDOW = 64
"""Calls within which a block is freed fast, and frees within which two blocks die together."""
MANY = 100
"""Blocks in use at once from which on a search of all is called long; the paper gives no number."""
HIGH = 10.0
"""Per cent of the memory requested from which on internal fragmentation is called high."""
BEST_FIT = "Proposed, with best fit"
WITHIN, LOW, HIGHEST = 0.1, 0.3, 0.7

internal, external = part("internal_bytes"), part("external_bytes")


def span(shares: Sequence[float]) -> str:
    """The least and the largest of some shares."""
    return f"{percent(min(shares))} to {percent(max(shares))}"


# ---- sizes -----------------------------------------------------------------------------------------------------------


def check_sizes(page: Page, sizes: Sizes) -> None:
    """Characteristics 1 and 3 of section 5, on packets without the nodes of queues."""
    tables = {name: size_table(found) for name, found in sizes.items()}
    distinct = {name: len(table) for name, table in tables.items()}
    few = min(distinct, key=lambda name: distinct[name])
    page.verdict(
        "drr-hundreds-of-sizes",
        f"{min(distinct.values()):,} to {max(distinct.values()):,} sizes",
        judge(min(distinct.values()) >= 100, fails(Cause.TRAFFIC, f"{marked(few)} has {distinct[few]}")),
        REAL,
    )
    two = {name: sum(row["share"] for row in table[:2]) for name, table in tables.items()}
    outside = [f"{marked(name)} {percent(share)}" for name, share in two.items() if not LOW <= share <= HIGHEST]
    page.verdict("drr-two-sizes", span(list(two.values())), _all_inside(outside), REAL)
    _check_modes(page, tables)
    others = {name: count - 2 for name, count in distinct.items()}
    odd = [f"{marked(name)} {count:,}" for name, count in others.items() if not 630 <= count <= 1650]
    rest = [1 - share for share in two.values()]
    page.verdict(
        "drr-other-sizes",
        f"{span(rest)}, {min(others.values()):,} to {max(others.values()):,} sizes",
        _all_inside([*outside, *odd]),
        REAL,
    )
    returned = {name: float(1 - np.isin(found, LISTS).mean()) for name, found in sizes.items()}
    outside = [f"{marked(name)} {percent(share)}" for name, share in returned.items() if not LOW <= share <= HIGHEST]
    page.verdict("drr-returned", span(list(returned.values())), _all_inside(outside), REAL)
    page.verdict("drr-figure-4", "the figure of sizes above", SHOWN)


def _all_inside(outside: Sequence[str]) -> Verdict:
    return judge(not outside, fails(Cause.TRAFFIC, f"outside are {', '.join(outside)}"))


def _check_modes(page: Page, tables: Mapping[str, Sequence[Mapping[str, int]]]) -> None:
    modes = {name: sorted(row["size"] for row in table[:2]) for name, table in tables.items()}
    far = [
        marked(name)
        for name, pair in modes.items()
        if any(abs(mode - paper) > AROUND for mode, paper in zip(pair, LISTS, strict=True))
    ]
    told = "; ".join(f"{small} and {large}" for small, large in modes.values())
    why = fails(
        Cause.TRAFFIC,
        f"the smaller is that of an acknowledgement on all networks, the larger that of a full packet not on "
        f"{', '.join(far)}",
    )
    page.verdict("drr-modes", f"{told} bytes", judge(not far, why), REAL)


def check_evenness(page: Page, sizes: Sizes) -> None:
    """How far the other sizes are from an even spread between the two, as Kolmogorov's distance."""
    distances = []
    for found in sizes.values():
        rest = np.sort(found[(found > LISTS[0]) & (found < LISTS[1])])
        even = (rest - LISTS[0]) / (LISTS[1] - LISTS[0])
        distances.append(float(np.abs(even - np.arange(1, len(rest) + 1) / len(rest)).max()) if len(rest) else 1.0)
    page.verdict(
        "drr-even",
        f"the share of sizes up to a bound is off an even one by {span(distances)} at most",
        judge(
            max(distances) <= EVEN_WITHIN,
            fails(Cause.TRAFFIC, "small packets are more frequent than large ones on every network"),
        ),
        REAL,
    )


# ---- behaviour in time -----------------------------------------------------------------------------------------------


def check_behaviour(page: Page, trial: Trial, wireless: Mapping[str, Trace]) -> None:
    """Characteristics 2 and 4 of section 5; `wireless` are traces of 802.11 frames."""
    traces = {name: trial.of(name)[0].trace for name in trial.names}
    full = {name: float((trace.live_bytes > trace.peak_live_bytes / 2).mean()) for name, trace in traces.items()}
    least, most = (found(full, key=lambda name: full[name]) for found in (min, max))
    page.verdict("drr-figure-3", "the figures of memory above", SHOWN)
    page.verdict(
        "drr-forms",
        f"more than half of the peak is live for {percent(full[least])} ({marked(least)}) to {percent(full[most])} "
        f"({marked(most)}) of the calls",
        judge(full[most] >= 4 * full[least], fails(Cause.TRAFFIC, "the networks differ less than fourfold")),
        trial.on,
    )
    fast = {name: _freed_fast(trace) for name, trace in traces.items()}
    here = f"freed within {WINDOW} calls: " + ", ".join(
        f"{marked(name)} {percent(share)}" for name, share in fast.items()
    )
    page.verdict(
        "drr-freed-late",
        here,
        judge(min(fast.values()) < 0.5, fails(Cause.TRAFFIC, "most blocks are freed fast on all networks")),
        trial.on,
    )
    blocks = {name: _most_in_main_pool(trace) for name, trace in traces.items()}
    few = [f"{marked(name)} {count:,}" for name, count in blocks.items() if count < MANY]
    page.verdict(
        "drr-many-blocks",
        f"up to {min(blocks.values()):,} to {max(blocks.values()):,} blocks in use at once",
        judge(not few, fails(Cause.TRAFFIC, f"less than {MANY} on {', '.join(few)}")),
        trial.on,
    )
    if trial.on == REAL:
        _check_locality(page, traces, wireless)


def _freed_fast(trace: Trace) -> float:
    objects = births_and_deaths(trace)
    return float((objects.death - objects.birth <= WINDOW).mean())


def _most_in_main_pool(trace: Trace) -> int:
    number, count = trace.objects()
    size = np.zeros(count, np.int64)
    taken = trace.op != FREE
    size[number[taken]] = trace.size[taken]
    other = ~np.isin(size[number], LISTS)
    return int(np.cumsum(np.where(other, np.where(taken, 1, -1), 0)).max())


def _check_locality(page: Page, traces: Mapping[str, Trace], wireless: Mapping[str, Trace]) -> None:
    found = {name: locality_of_frees(births_and_deaths(trace))[-1] for name, trace in {**traces, **wireless}.items()}
    found = {name: row for name, row in found.items() if row["share"] is not None}

    def told(names: Mapping[str, object]) -> str:
        rows = [found[name] for name in names if name in found]
        if not rows:
            return "none"
        share, chance = (mean(row[key] for row in rows) for key in ("share", "by_chance"))
        return f"{percent(share)} (by chance {percent(chance)})"

    less = [marked(name) for name, row in found.items() if row["share"] <= row["by_chance"]]
    aside = f"; not more than by chance on {', '.join(less)}" if less else ""
    page.verdict(
        "drr-locality",
        f"neighbours that die within {WINDOW} frees: wired {told(traces)}; 802.11, whole frames, "
        f"{told(wireless)}{aside}",
        judge(
            2 * len(less) < len(found),
            fails(Cause.TRAFFIC, f"on {len(less)} of {len(found)} networks not more often than by chance"),
        ),
        REAL,
    )


def check_flows(page: Page, given: Mapping[str, tuple[Trace, NDArray[np.uint32]]]) -> None:
    """Whether packets that come one after the other die together rather if they are of one flow; flows by packet."""
    shares = []
    for trace, flow in given.values():
        objects = births_and_deaths(trace)
        packet = trace.id[objects.birth].astype(np.int64)
        stored = packet < len(flow)
        packet, death = packet[stored], objects.death[stored]
        order = np.searchsorted(np.sort(death), death)
        near = np.abs(np.diff(order)) <= WINDOW
        same = flow[packet[1:]] == flow[packet[:-1]]
        shares.append((float(near[same].mean()), float(near[~same].mean())))
    page.verdict(
        "drr-flows-linked",
        f"packets that follow each other and die within {WINDOW} frees: {percent(mean(own for own, _ in shares))} of "
        f"one flow, {percent(mean(other for _, other in shares))} of two",
        judge(
            all(own > other for own, other in shares),
            fails(Cause.TRAFFIC, f"on {sum(own <= other for own, other in shares)} networks flows make no difference"),
        ),
        REAL,
    )


# ---- the systems' allocators -----------------------------------------------------------------------------------------


def check_systems(page: Page, trial: Trial) -> None:
    """What section 5 says of the operating systems' allocators."""
    if trial.on == REAL:
        page.verdict(
            "drr-systems-freelists",
            "none, 127, up to 128, 8 and 2",
            fails(Cause.CONTRADICTION, "its Table 1 gives Windows CE one heap without freelists, and uClinux two"),
        )
    lost = {heap: trial.average(heap, external) for heap in (*SYSTEMS, PROPOSED) if trial.served(heap)}
    lower = [heap for heap in lost if heap != PROPOSED and lost[heap] <= lost[PROPOSED]]
    page.verdict(
        "drr-systems-external",
        "external, of the memory requested: " + ", ".join(f"{heap} {share:.0f} %" for heap, share in lost.items()),
        judge(
            not lower,
            fails(
                Cause.CONTRADICTION,
                f"{', '.join(lower)} lose less than the proposed one, whose own lists keep what they got; its Table 1 "
                "lets Windows CE, Windows XP and Linux merge free blocks",
            ),
        ),
        trial.on,
    )
    _check_best_fit(page, trial)
    inside = {heap: trial.average(heap, internal) for heap in (*SYSTEMS, *UNSPLIT) if trial.served(heap)}
    whole = [heap for heap in inside if heap in ("Enea OSE", "uClinux", *UNSPLIT)]
    low = [heap for heap in whole if inside[heap] < HIGH]
    page.verdict(
        "drr-internal-high",
        "inside blocks, of the memory requested, in heaps that do not split: "
        + ", ".join(f"{heap} {inside[heap]:.0f} %" for heap in whole),
        judge(not low, fails(Cause.TRAFFIC, f"{', '.join(low)} stay below {HIGH:g} %")),
        trial.on,
    )
    told = ", ".join(
        f"{of} {inside[of]:.1f} % with splitting and {inside[name]:.0f} % without" for name, of in UNSPLIT.items()
    )
    contradiction = fails(
        Cause.CONTRADICTION,
        "its Table 1 gives Windows XP full splitting and coalescing, and merges in Windows CE on every call",
    )
    page.verdict("drr-systems-unsplit", f"internal: {told}", contradiction, trial.on)
    told = ", ".join(
        f"{of} {trial.average(of, fragmentation):.1f} % with merging and splitting, "
        f"{trial.average(name, fragmentation):.0f} % with neither"
        for name, of in UNSPLIT.items()
    )
    page.verdict("drr-systems-uncoalesced", f"fragmentation: {told}", contradiction, trial.on)
    _check_larger(page, trial, inside, lost)


def _check_best_fit(page: Page, trial: Trial) -> None:
    each = {heap: trial.average(heap, accesses) for heap in ("Linux", "Enea OSE", "uClinux", PROPOSED, BEST_FIT)}
    page.verdict(
        "drr-systems-best-fit",
        "accesses a call: " + ", ".join(f"{heap} {count:,.0f}" for heap, count in each.items()),
        fails(
            Cause.CONTRADICTION,
            "its Table 1 has one list for each class in Enea OSE and powers of two in uClinux, where nothing is "
            f"searched; one list searched for the best fit takes {each[BEST_FIT] / each[PROPOSED]:.1f} times the "
            "accesses of first fit",
        ),
        trial.on,
    )


def _check_larger(page: Page, trial: Trial, inside: Mapping[str, float], lost: Mapping[str, float]) -> None:
    systems = [heap for heap in SYSTEMS if heap in lost]
    within, between = (mean(some[heap] for heap in systems) for some in (inside, lost))
    largest = max(systems, key=lambda heap: lost[heap])
    page.verdict(
        "drr-internal-larger",
        f"mean of the five systems, of the memory requested: internal {within:.0f} %, external {between:.0f} %",
        judge(
            within > between,
            fails(
                Cause.TRAFFIC,
                f"networks change which sizes they send, and what {largest} keeps for those of before is external: "
                f"{lost[largest]:.0f} %",
            ),
        ),
        trial.on,
    )


# ---- the proposed allocator ------------------------------------------------------------------------------------------


def check_both_better(page: Page, trials: Sequence[Trial]) -> None:
    """Fragmentation and performance at the same time, and how different inputs are."""
    for trial in trials:
        kinds = [(trial, fragmentation), *([(trial.counted, millions)] if known(trial.counted, millions) else [])]
        pairs = [
            (of.average(PROPOSED, value), mean(of.average(heap, value) for heap in known(of, value)))
            for of, value in kinds
        ]
        units = ("%", "M")
        here = ", ".join(
            f"{own:.1f} {unit} against {other:.1f} {unit}" for (own, other), unit in zip(pairs, units, strict=False)
        )
        worse = [unit for (own, other), unit in zip(pairs, units, strict=False) if own >= other]
        page.verdict(
            "drr-both-better",
            here + ("" if len(pairs) == 2 else f" ({NO_TOOLS})"),
            judge(not worse, fails(Cause.UNEXPLAINED, "the mean of the five systems is better in one of the two")),
            trial.on,
        )
        each = trial.columns(PROPOSED, fragmentation)
        differ = any(max(some) >= 2 * min(some) for some in (each, trial.columns(PROPOSED, accesses)))
        page.verdict(
            "drr-inputs-differ",
            f"the proposed allocator: fragmentation {min(each):.1f} to {max(each):.1f} %"
            + (
                f", {_range(trial.counted.columns(PROPOSED, millions))} M instructions"
                if trial.counted.timed(PROPOSED)
                else ""
            ),
            judge(differ, fails(Cause.TRAFFIC, "they differ less than twofold")),
            trial.on,
        )


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def check_ramp(page: Page, trial: Trial) -> None:
    """Whether every allocator is worst where most traffic waits."""
    peaks = {name: mean(run.trace.peak_live_bytes for run in trial.of(name)) for name in trial.names}
    largest = max(peaks, key=lambda name: peaks[name])
    heaps = [heap for heap in (*SYSTEMS, PROPOSED) if trial.served(heap)]

    def worst(heap: str, value: Callable[[Run, str], float]) -> str:
        return max(trial.names, key=lambda name: trial.column(heap, value, name))

    wasteful = sum(worst(heap, fragmentation) == largest for heap in heaps)
    slow = sum(worst(heap, accesses) == largest for heap in heaps)
    name = worst(PROPOSED, fragmentation)
    here = (
        f"most waits on {marked(largest)}: there {wasteful} of {len(heaps)} allocators fragment most, and {slow} take "
        f"most accesses; the proposed one has {trial.column(PROPOSED, fragmentation, largest):.1f} %, and "
        f"{trial.column(PROPOSED, fragmentation, name):.1f} % on {marked(name)}"
    )
    otherwise = fails(
        Cause.UNEXPLAINED, "while what waits only grows, free memory is used again at once, and little of it is lost"
    )
    page.verdict("drr-ramp", here, judge(wasteful == slow == len(heaps), otherwise), trial.on)


def check_random(page: Page, real: Trial, mix: Trial) -> None:
    """Whether the drawn traces predict what the allocators do on real networks."""
    off = {
        heap: mix.average(heap, fragmentation) - real.average(heap, fragmentation)
        for heap in (*SYSTEMS, PROPOSED)
        if real.served(heap) and mix.served(heap)
    }
    told = ", ".join(f"{heap} {points:+.0f}" for heap, points in off.items())
    page.verdict(
        "drr-random-trace",
        f"fragmentation on the drawn mix less that on real networks, in points: {told}",
        judge(max(map(abs, off.values())) >= 100 * WITHIN, fails(Cause.TRAFFIC, "all are within ten points")),
    )


# ---- techniques ------------------------------------------------------------------------------------------------------


def check_techniques(page: Page, on: str, traces: Mapping[str, Trace], proposed: Recipe) -> None:
    """Splitting as the only remedy, and coalescing as the end of external fragmentation: all uses crossed."""
    crossed = {
        (split, lists, fit, coalesce): _design(proposed, split, lists, fit, coalesce)
        for split, lists, fit, coalesce in product(
            ("always", "never"), (True, False), ("first", "best"), ("immediate", "never")
        )
    }
    names = {key: " ".join(map(str, key)) for key in crossed}
    trial = try_all(on, {(name, 0): trace for name, trace in traces.items()}, {names[k]: r for k, r in crossed.items()})
    wasted = {key: trial.average(name, fragmentation) for key, name in names.items()}
    best = {use: min(found for key, found in wasted.items() if key[0] == use) for use in ("always", "never")}
    page.verdict(
        "drr-splitting-only",
        f"the least fragmentation of all eight uses of the other techniques: {best['never']:.1f} % without splitting, "
        f"{best['always']:.1f} % with it",
        judge(best["always"] < best["never"] / 2, fails(Cause.UNEXPLAINED, "splitting does not halve it")),
        on,
    )
    without = {lists: trial.average(names["always", lists, "first", "never"], external) for lists in (True, False)}
    with_it = {lists: trial.average(names["always", lists, "first", "immediate"], external) for lists in (True, False)}
    page.verdict(
        "drr-coalescing-ends-external",
        f"external, of the memory requested: with two freelists {without[True]:.0f} % without coalescing and "
        f"{with_it[True]:.0f} % with it; without freelists {without[False]:.0f} % and {with_it[False]:.1f} %",
        judge(
            with_it[True] <= 1,
            fails(
                Cause.CONTRADICTION,
                "its Table 2 says that freelists increase external fragmentation, and what they hold never merges; its "
                "own allocator keeps 55 % in Table 3 with little of it inside blocks",
            ),
        ),
        on,
    )


def _design(proposed: Recipe, split: str, lists: bool, fit: str, coalesce: str) -> Recipe:
    recipe = with_general(proposed, split=split, fit=fit, coalesce=coalesce)
    if lists:
        return recipe
    return recipe.model_copy(update={"pools": tuple(pool for pool in recipe.pools if not isinstance(pool, Quick))})
