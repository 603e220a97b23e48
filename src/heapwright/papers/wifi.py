"""The sizes of packets, and pools for them under a transmit queue.

Mamagkakis, Soudris and Catthoor 2007, "Middleware design optimization of wireless protocols based on the exploitation
of dynamic input patterns".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from heapwright.host_timing import Bench
from heapwright.packets import PacketTable
from heapwright.papers import packet_tables
from heapwright.papers.page import Page, percent
from heapwright.profile import FREQUENT_SHARE, profile_packets
from heapwright.recipes import Recipe
from heapwright.replay import replay
from heapwright.traces import Trace
from heapwright.traffic.synthetic import synthesise
from heapwright.workloads.queue import LIMIT, queue
from heapwright.zoo import load

PAPER = "Mamagkakis et al. 2007"
FIXED, TUNED, PAGES = "wifi-special-pools", "special pools of the network", "powers of two and pages"
HEAPS = (FIXED, TUNED, PAGES, "kingsley", "tlsf", "exact-bins")
ACK, ACK_SHARE, MTU, MTU_SHARE = 40, 0.43, 1500, 0.26
"""The mix of sizes that section 3 states; all others are even."""
DRAWS = 18
ENDS = ((0, "first"), (-1, "mean"))
"""Where a profile's stability tells the first sample and all packets."""
SAMPLE = 1000
"""Packets of the smallest sample the paper looks at (section 3)."""

_PAGES = """
name = "powers of two and pages"
about = "64 to 1024 bytes in powers of two, and pages of 4096 above, never split: section 5's account of Linux"
[[pool]]
kind = "fixed"
sizes = [64, 128, 256, 512, 1024, 4096, 8192, 16384, 65536]
counts = "grow"
header = 8
"""

_INTRODUCTION = f"""\
{{paper}} characterise 18 networks of the Dartmouth campus and propose pools for their packets. Those traces are not
to be had; these {{count}} stand in: {{names}}. Where a table has IP packets, sizes are those of IP packets, as in
the paper, otherwise of frames. Each trace is `heapwright workload queue`: a queue of {{limit:,}} packets filled and
emptied once, with the first packets of the table.

- **{FIXED}** is the paper's allocator as in the zoo: pools for 40, 64, 128, 256, 512, 1024 and 1500 bytes.
- **{TUNED}** follows the paper's rule on each network: a special block for each size with at least 10 % of all
  packets, powers of two up to the largest.
- **{PAGES}** is section 5's account of its Linux baseline: a 40-byte packet takes a block of 64 bytes and one of
  1500 a page of 4096. Lea's allocator, which the paper calls its baseline, does not waste so much: most of the
  188.74 % come from pages that are not split, as the paper's own mix shows below. The model keeps a list of free
  blocks for each class and neither splits nor coalesces; the paper's baseline did both, and searched 128 lists, so
  that its times and accesses cannot be those of this model.

Fragmentation leaves headers out, as the paper's numbers do. Energy is that of all accesses in an SRAM of the
footprint's size (90 nm); the paper's unit, millijoule, is taken for a slip: it would be a million times what such a
memory needs for an access. Time is CPU time of the generated code on this host. Object code is not on this page."""


@dataclass(frozen=True)
class Network:
    """One packet table: its profile, the queue's trace, and what each heap made of it."""

    name: str
    profile: dict[str, Any]
    trace: Trace
    metrics: dict[str, dict[str, Any]]
    ns: dict[str, float]

    def milliseconds(self, heap: str) -> float:
        """Host time of all calls."""
        return self.ns[heap] * len(self.trace) / 1e6


def special_pools(profile: dict[str, Any]) -> Recipe:
    """Pools by the paper's rule (section 4, A): a special block for each size with at least 10 % of the packets, and
    powers of two from 64 bytes up to the largest packet.
    """
    frequent = {row["size"] for row in profile["sizes"] if row["share"] >= FREQUENT_SHARE}
    largest = max(row["size"] for row in profile["sizes"])
    powers = {64 << shift for shift in range(32) if 64 << shift < largest}
    rounded = {-(-size // 4) * 4 for size in frequent | powers | {largest}}
    pool = {"kind": "fixed", "sizes": sorted(rounded), "counts": "grow", "header": 8, "find": "first-fit"}
    return Recipe.from_dict({"name": TUNED, "pool": [pool]})


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Figures 1 and 3 on every packet table of the folder, with the claims of sections 3 and 5.

    Raises HeapwrightError as `heapwright.papers.packet_tables`, or where no table has enough packets.
    """
    networks = []
    with Bench() as bench:
        for name, table in packet_tables(packets).items():
            progress(f"wifi: {name}")
            networks.append(_measure(name, table, bench))
    made = Page("wifi", "Pools for the packets of a network", PAPER)
    _introduce(made, networks)
    _sizes(made, networks)
    _heaps(made, networks)
    _paper_mix(made)
    _check(made, networks)
    return made


def _measure(name: str, table: PacketTable, bench: Bench) -> Network:
    profile = profile_packets(table, name)
    trace = queue(table, size="ip" if profile["size_column"] == "ip_len" else "frame")
    heaps = {heap: load(heap) for heap in HEAPS if heap not in (TUNED, PAGES)}
    heaps |= {TUNED: special_pools(profile), PAGES: Recipe.parse(_PAGES)}
    metrics: dict[str, dict[str, Any]] = {heap: dict(replay(trace, recipe)) for heap, recipe in heaps.items()}
    programs = {heap: bench.generated(recipe) for heap, recipe in heaps.items()}
    return Network(name, profile, trace, metrics, bench.measure(programs, trace))


def _introduce(page: Page, networks: list[Network]) -> None:
    names = ", ".join(network.name for network in networks)
    page.text(_INTRODUCTION.format(paper=PAPER, count=len(networks), names=names, limit=LIMIT))


def _sizes(page: Page, networks: list[Network]) -> None:
    page.text(
        "## Sizes (the paper's Figure 1 and section 3)\n\nThe paper: 43 % of 40 bytes, 26 % of 1500, over 1200 sizes."
    )
    header = (
        "network",
        "packets",
        "sizes of",
        "first mode",
        "second mode",
        "distinct sizes",
        "first 1,000: modes off by",
    )
    rows = [("the paper (average of 18)", "1,000,000", "IP", "40 B: 43 %", "1500 B: 26 %", "> 1200", "< 2 %")]
    for network in networks:
        profile = network.profile
        modes = [f"{mode['size']} B: {percent(mode['share'])}" for mode in profile["modes"]]
        unit = "IP" if profile["size_column"] == "ip_len" else "frames"
        distinct = f"{profile['distinct_sizes']:,}"
        off = percent(_change(network), 1)
        rows.append((network.name, f"{profile['packets']:,}", unit, modes[0], modes[-1], distinct, off))
    page.table(header, rows)
    page.figure(_histogram(networks))


def _change(network: Network) -> float:
    """How far the share of either mode in the first SAMPLE packets is from its share in all."""
    stability = network.profile["stability"]
    ends = zip(stability[0]["shares"], stability[-1]["shares"], strict=True)
    return max(abs(float(first["first"]) - float(last["mean"])) for first, last in ends)


def _histogram(networks: list[Network]) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, Figure, inline

    rows = [
        {"network": network.name, "size": row["size"], "share": row["share"]}
        for network in networks
        for row in network.profile["sizes"]
        if row["share"] >= 0.0005
    ]
    chart = (
        inline(rows)
        .mark_tick(thickness=2, color=BLUE)
        .encode(
            x=alt.X("size:Q", title="size, B", axis=alt.Axis(tickCount=8)),
            y=alt.Y("network:N", title=None),
            opacity=alt.Opacity("share:Q", scale=alt.Scale(type="sqrt", range=[0.1, 1]), legend=None),
            size=alt.Size("share:Q", scale=alt.Scale(range=[4, 18]), legend=None),
        )
    )
    title = f"The sizes of {len(networks)} networks"
    note = "A mark a size with at least 0.05 % of the packets; taller and darker is more frequent."
    return Figure("wifi-sizes", title, note, chart.properties(height=22 * len(networks)), 620)


def _heaps(page: Page, networks: list[Network]) -> None:
    page.text(
        "## A queue filled and emptied (the paper's Figure 3)\n\nAverages over all networks. The paper's times are "
        "those of its simulation."
    )
    header = ("allocator", "requested, B", "footprint, B", "fragmentation", "accesses", "energy, nJ", "time, ms")
    rows: list[tuple[str, ...]] = [
        ("the paper: proposed", "621,172", "671,210", "8.05 %", "–", "16,072 (“mJ”)", "< 100"),
        ("the paper: Linux", "621,172", "1,793,611", "188.74 %", "–", "162,488 (“mJ”)", "> 200"),
    ]
    for heap in HEAPS:
        of = [network.metrics[heap] for network in networks]
        requested, used, accesses, energy = (
            mean(float(one[key]) for one in of)
            for key in ("requested_peak_bytes", "allocated_peak_bytes", "accesses", "energy_nJ")
        )
        time = mean(network.milliseconds(heap) for network in networks)
        share = percent(used / requested - 1, 1)
        rows.append(
            (heap, f"{requested:,.0f}", f"{used:,.0f}", share, f"{accesses:,.0f}", f"{energy:,.0f}", f"{time:.3f}")
        )
    page.table(header, rows)
    page.text("Fragmentation on each network:")
    each = [
        [network.name, *(percent(network.metrics[heap]["fragmentation"], 1) for heap in HEAPS)] for network in networks
    ]
    page.table(("network", *HEAPS), each)
    page.figure(_bars(networks, "fragmentation", "wifi-fragmentation", "fragmentation, headers left out", "%"))
    page.figure(_bars(networks, "energy_nJ", "wifi-energy", "energy of all accesses, nJ", "~s"))


def _paper_mix(page: Page) -> None:
    """The sizes as section 3 states them, drawn as often as the paper has networks."""
    rest = (1 - ACK_SHARE - MTU_SHARE) / (MTU - ACK - 1)
    sizes = [{"size": size, "share": rest} for size in range(ACK + 1, MTU)]
    sizes += [{"size": ACK, "share": ACK_SHARE}, {"size": MTU, "share": MTU_SHARE}]
    profile = {"name": "section 3", "packets": LIMIT, "size_column": "ip_len", "sizes": sizes, "seconds": 1, "flows": 1}
    traces = [queue(synthesise(profile, seed=seed)) for seed in range(1, DRAWS + 1)]
    page.text(
        "## The paper's own mix\n\n"
        "Sizes drawn as section 3 states them (43 % of 40 bytes, 26 % of 1500, the rest even between): synthetic, "
        f"{DRAWS} "
        "draws, averages."
    )
    rows = [
        ("the paper: proposed", "621,172", "671,210", "8.05 %"),
        ("the paper: Linux", "621,172", "1,793,611", "188.74 %"),
    ]
    wasted = {}
    for heap, recipe in ((FIXED, load(FIXED)), (PAGES, Recipe.parse(_PAGES))):
        of: list[dict[str, Any]] = [dict(replay(trace, recipe)) for trace in traces]
        requested, used = (
            mean(float(one[key]) for one in of) for key in ("requested_peak_bytes", "allocated_peak_bytes")
        )
        wasted[heap] = used / requested - 1
        rows.append((heap, f"{requested:,.0f}", f"{used:,.0f}", percent(wasted[heap], 2)))
    page.table(("allocator", "requested, B", "footprint, B", "fragmentation"), rows)
    held = 0.08 <= wasted[FIXED] <= 0.1
    page.claim(f"8.05 % of fragmentation ({FIXED}, the paper's mix)", "8.05 %", percent(wasted[FIXED], 2), held)
    near = abs(wasted[PAGES] - 1.8874) < 0.25
    page.claim(f"188.74 % of Linux ({PAGES}, the paper's mix)", "188.74 %", percent(wasted[PAGES], 2), near)


def _bars(networks: list[Network], key: str, name: str, axis: str, style: str) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, INK, VERMILLION, Figure, inline

    shown = (FIXED, TUNED, PAGES)
    rows = [
        {"network": network.name, "heap": heap, "value": network.metrics[heap][key]}
        for network in networks
        for heap in shown
    ]
    chart = (
        inline(rows)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=alt.X("value:Q", title=axis, axis=alt.Axis(format=style), scale=alt.Scale(type="symlog")),
            y=alt.Y("network:N", title=None, axis=alt.Axis(grid=True)),
            color=alt.Color("heap:N", sort=None, scale=alt.Scale(domain=shown, range=[BLUE, INK, VERMILLION])),
            shape=alt.Shape("heap:N", sort=None, scale=alt.Scale(domain=shown)),
        )
    )
    title = axis[0].upper() + axis[1:]
    note = f"A queue of {LIMIT:,} packets filled and emptied once, on each network."
    return Figure(name, title, note, chart.properties(height=22 * len(networks)), 620)


def _check(page: Page, networks: list[Network]) -> None:
    two = [network for network in networks if network.profile["top_two_share"] >= 0.3]
    page.claim(
        "two sizes have a significant percentage of the packets",
        "69 % together",
        f"30 % or more on {len(two)} of {len(networks)} networks",
        len(two) > len(networks) / 2,
    )
    classic = [n for n in networks if {mode["size"] for mode in n.profile["modes"]} == {40, 1500}]
    page.claim(
        "they are the acknowledgement (40 B) and the MTU (1500 B)",
        "on all 18",
        f"on {len(classic)} of {len(networks)}",
        len(classic) > len(networks) / 2,
    )
    changes = [_change(network) for network in networks]
    close = sum(change < 0.02 for change in changes)
    page.claim(
        f"the shares are “almost the same” in samples of {SAMPLE:,} packets and of all",
        "less than 2 % variance",
        f"within 2 points on {close} of {len(networks)}; {percent(mean(changes))} points off on average",
        close > len(networks) / 2,
    )
    sampled, whole = (
        mean(network.profile["stability"][at]["shares"][0][key] for network in networks) for at, key in ENDS
    )
    page.claim(
        f"so for the average of all networks (first mode, first {SAMPLE:,} packets and all)",
        "less than 2 % variance",
        f"{percent(sampled, 1)} and {percent(whole, 1)}",
        abs(sampled - whole) < 0.02,
    )
    many = sum(network.profile["distinct_sizes"] > 1200 for network in networks)
    page.claim("more than 1200 sizes in every trace", "18 of 18", f"{many} of {len(networks)}", many == len(networks))
    for heap in (FIXED, TUNED):
        total = _total(networks, heap, "allocated_peak_bytes") / _total(networks, heap, "requested_peak_bytes") - 1
        page.claim(f"8.05 % of fragmentation ({heap})", "8.05 %", percent(total, 1), total <= 0.1)
        _against_pages(page, networks, heap)


def _against_pages(page: Page, networks: list[Network], heap: str) -> None:
    for what, key, theirs in (("memory", "allocated_peak_bytes", 0.6258), ("energy", "energy_nJ", 0.9011)):
        saved = 1 - _total(networks, heap, key) / _total(networks, PAGES, key)
        claim = f"{percent(theirs, 1)} less {what} than Linux ({heap} against {PAGES})"
        page.claim(claim, percent(theirs, 1), _less(saved), saved >= theirs - 0.05)
    faster = 1 - sum(n.ns[heap] for n in networks) / sum(n.ns[PAGES] for n in networks)
    page.claim(f"60.2 % faster than Linux ({heap} against {PAGES})", "60.2 %", _less(faster), faster >= 0.55)


def _less(saved: float) -> str:
    return percent(saved, 1) if saved >= 0 else f"{1 - saved:.3g} times as much"


def _total(networks: list[Network], heap: str, key: str) -> float:
    return sum(float(network.metrics[heap][key]) for network in networks)
