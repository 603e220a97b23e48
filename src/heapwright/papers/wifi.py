"""The sizes of packets, and pools for them under a transmit queue.

Mamagkakis, Soudris and Catthoor 2007, "Middleware design optimization of wireless protocols based on the exploitation
of dynamic input patterns".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from heapwright.explore.families import Demand
from heapwright.explore.special_pools import SPECIAL_POOLS, special_pools
from heapwright.host.timing import Bench
from heapwright.papers import measuring
from heapwright.papers.held_out import PUBLISHED, RETUNED, Split, add_contest
from heapwright.papers.measuring import cell
from heapwright.papers.page import Page, percent
from heapwright.papers.traffic import packet_tables
from heapwright.recipes.pools import Fixed
from heapwright.recipes.recipe import Recipe
from heapwright.replay.replay import replay
from heapwright.traces.trace import Trace
from heapwright.traces.validation import FREE, MALLOC
from heapwright.traffic.packets import PacketTable
from heapwright.traffic.profile import profile_packets
from heapwright.traffic.synthetic import synthesise
from heapwright.workloads.queue import LIMIT, queue
from heapwright.zoo.catalogue import load

PAPER = "Mamagkakis et al. 2007"
FIXED, TUNED, PAGES, LEA = SPECIAL_POOLS, "special pools of the network", "linux-pow2-page", "lea-2.7.2"
LISTED = "wifi-special-pools with free lists"
HEAPS = (FIXED, TUNED, LISTED, PAGES, LEA, "kingsley", "tlsf", "exact-bins")
LEVELS = ("O0", "Os")
LINUX_BYTES = 1_793_611
"""Footprint of the paper's Linux baseline (section 5)."""
ACK, ACK_SHARE, MTU, MTU_SHARE = 40, 0.43, 1500, 0.26
"""The mix of sizes that section 3 states; all others are even."""
DRAWS = 18
ENDS = ((0, "first"), (-1, "mean"))
"""Where a profile's stability tells the first sample and all packets."""
SAMPLE = 1000
"""Packets of the smallest sample the paper looks at (section 3)."""

_INTRODUCTION = f"""\
{{paper}} characterise 18 networks of the Dartmouth campus and propose pools for their packets. Those traces are not
to be had; these {{count}} stand in: {{names}}. Where a table has IP packets, sizes are those of IP packets, as in
the paper, otherwise of frames. Each trace is `heapwright workload queue`: a queue of {{limit:,}} packets filled and
emptied once, with the first packets of the table.

- **{FIXED}** is the paper's allocator as in the zoo: pools for 40, 64, 128, 256, 512, 1024 and 1500 bytes.
- **{TUNED}** follows the paper's rule on each network: a special block for each size with at least 10 % of all
  packets, powers of two from the first that holds the smallest packet, and a block of the largest.
- **{LISTED}** finds a free block of a pool by a list, not by walking over the used ones: what the paper's pools would
  be without the first fit of its Figure 2.
- **{PAGES}** is section 5's account of its Linux baseline: a 40-byte packet takes a block of 64 bytes and one of
  1500 a page of 4096. The model keeps a list of free blocks for each class and neither splits nor coalesces; the
  paper's baseline did both, and searched 128 lists, so that its times and accesses cannot be those of this model.
- **{LEA}** is the allocator that the paper names as its baseline. It wastes next to nothing here, so it cannot be where
  the paper's 188.74 % come from; those are taken apart below, on the paper's own mix.

Fragmentation leaves headers out, as the paper's numbers do. Energy is that of all accesses in an SRAM of the
footprint's size (90 nm); the paper's unit, millijoule, is taken for a slip: it would be a million times what such a
memory needs for an access. Time is CPU time of the generated code on this host."""


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


def recipe_of(heap: str) -> Recipe:
    """A heap of the zoo, or the paper's pools with free lists."""
    if heap != LISTED:
        return load(heap)
    pools = load(FIXED)
    listed = pools.pools[0].model_copy(update={"find": "freelist"})
    return pools.model_copy(update={"name": LISTED, "pools": (listed, *pools.pools[1:])})


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Figures 1 and 3 on every packet table of the folder, with the claims of sections 3 and 5.

    Raises HeapwrightError as `heapwright.papers.packet_tables`, or where no table has enough packets.
    """
    tables, networks = packet_tables(packets), []
    with Bench() as bench:
        for name, table in tables.items():
            progress(f"wifi: {name}")
            networks.append(_measure(name, table, bench))
    made = Page("wifi", "Pools for the packets of a network", PAPER)
    progress("wifi: code")
    codes = {heap: measuring.code_sizes(recipe_of(heap), LEVELS) for heap in HEAPS if heap != TUNED}
    _introduce(made, networks)
    _sizes(made, networks)
    _example(made)
    _heaps(made, networks, codes)
    _paper_mix(made)
    _contest(made, networks, progress)
    _check(made, networks)
    _check_code(made, codes)
    return made


def _contest(page: Page, networks: list[Network], progress: Callable[[str], None]) -> None:
    """The best of the full space against the paper's pools, on networks that neither was tuned on."""
    traces = {network.name: network.trace for network in networks}
    split = Split.of(traces, traces)
    pools = load(FIXED)
    asked = [{"size": size, "share": share} for size, share in Demand.of(list(split.explored.values())).sizes]
    tuned = special_pools({"name": "the networks explored", "sizes": asked}).model_copy(update={"name": RETUNED})
    packets = max(len(trace) for trace in traces.values()) // 2
    add_contest(
        page, split, (packets, packets), {PUBLISHED: pools, RETUNED: tuned}, progress, "no such claim; found by hand"
    )


def _measure(name: str, table: PacketTable, bench: Bench) -> Network:
    profile = profile_packets(table, name)
    trace = queue(table, size="ip" if profile["size_column"] == "ip_len" else "frame")
    heaps = {heap: special_pools(profile) if heap == TUNED else recipe_of(heap) for heap in HEAPS}
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
    page.text("Share of the two modes in the first packets of each network, averages over the networks:")
    page.table(("packets", "networks", "first mode", "second mode"), _samples(networks))
    page.figure(_histogram(networks))


def _samples(networks: list[Network]) -> list[list[str]]:
    """The average shares of the modes by size of the sample, of networks that have so many packets; then of all."""
    rows = []
    for count in sorted({row["packets"] for network in networks for row in network.profile["stability"][:-1]}):
        shares = [
            [share["first"] for share in row["shares"]]
            for network in networks
            for row in network.profile["stability"]
            if row["packets"] == count
        ]
        rows.append([f"{count:,}", str(len(shares)), *(percent(mean(of), 1) for of in zip(*shares, strict=False))])
    whole = [[mode["share"] for mode in network.profile["modes"]] for network in networks]
    return [*rows, ["all", str(len(whole)), *(percent(mean(of), 1) for of in zip(*whole, strict=False))]]


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


def _heaps(page: Page, networks: list[Network], codes: Mapping[str, Any]) -> None:
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
    shown: list[tuple[str, Callable[[Network, str], str]]] = [
        ("Execution time, ms", lambda network, heap: f"{network.milliseconds(heap):.3f}"),
        ("Memory footprint, B", lambda network, heap: f"{network.metrics[heap]['allocated_peak_bytes']:,}"),
        ("Fragmentation", lambda network, heap: percent(network.metrics[heap]["fragmentation"], 1)),
        ("Accesses", lambda network, heap: f"{network.metrics[heap]['accesses']:,}"),
        ("Energy, nJ", lambda network, heap: f"{network.metrics[heap]['energy_nJ']:,.0f}"),
    ]
    for what, show in shown:
        page.text(f"{what}, on each network:")
        page.table(("network", *HEAPS), [[one.name, *(show(one, heap) for heap in HEAPS)] for one in networks])
    for name, axis, style, value in (
        ("wifi-time", "execution time of all calls, ms", "~g", Network.milliseconds),
        ("wifi-footprint", "memory footprint, headers left out, B", "~s", _metric("allocated_peak_bytes")),
        ("wifi-fragmentation", "fragmentation, headers left out", "%", _metric("fragmentation")),
        ("wifi-accesses", "accesses of metadata", "~s", _metric("accesses")),
        ("wifi-energy", "energy of all accesses, nJ", "~s", _metric("energy_nJ")),
    ):
        page.figure(_bars(networks, value, name, axis, style))
    page.text(
        "### Object code\n\nThe paper's allocator adds 11.4 KByte to that of the system. Ours are bytes of `malloc` "
        f"and `free` with what they call, for a {measuring.CPU}; {FIXED} has a general pool for larger requests in it."
    )
    sizes = [[heap, *(cell(_code_bytes(code, level)) for level in LEVELS)] for heap, code in codes.items()]
    page.table(("", *(f"-{level}" for level in LEVELS)), sizes)


def _metric(key: str) -> Callable[[Network, str], float]:
    return lambda network, heap: float(network.metrics[heap][key])


def _code_bytes(code: Any, level: str) -> int | None:
    return None if code is None else int(code[level].text + code[level].data)


def _example(page: Page) -> None:
    """The paper's Figure 2: two blocks of 1024 bytes in use and one free; what a request looks at."""
    page.text(
        "## The example of Figure 2\n\nTwo blocks of the 1024-byte pool are in use, a third is free. A request for "
        "1000 bytes passes the pools that are too small, then both used blocks, and takes the third, says the paper; "
        "one for 1200 bytes takes a block of 1500, and at worst 8 accesses find the pool. Ours finds the pool by "
        "comparing the size with constants of the code, without an access: what follows are accesses in the pool."
    )
    rows = []
    for size in (1000, 1200, 40, 1500):
        block, accesses, grew = figure_2(size)
        rows.append([f"{size} B", f"{block:,} B", accesses, "fresh memory" if grew else "the free block"])
    page.table(("request", "block", "accesses", "from"), rows)
    block, accesses, grew = figure_2(1000)
    page.claim(
        "the third 1024-byte block serves a request for 1000 bytes",
        "the third",
        f"a block of {block} bytes, {'fresh' if grew else 'the free one'}, after {accesses} accesses",
        block == 1024 and not grew,
    )
    block, accesses, _ = figure_2(1200)
    page.claim("a request for 1200 bytes gets a block of 1500", "1500", f"{block} bytes", block == 1500)


def figure_2(size: int) -> tuple[int, int, bool]:
    """A request in the state of the paper's Figure 2: its block's bytes, accesses, and whether the memory grew."""
    op, id, sizes = [MALLOC, MALLOC, MALLOC, FREE, MALLOC], [0, 1, 2, 2, 3], [1024, 1024, 1024, 0, size]
    before, after = (
        replay(Trace.from_columns(op=op[:count], id=id[:count], size=sizes[:count]), load(FIXED)) for count in (4, 5)
    )
    grown = int(after["allocated_peak_bytes"] or 0) - int(before["allocated_peak_bytes"] or 0)
    accesses = int(after["accesses"] or 0) - int(before["accesses"] or 0)
    return grown or 1024, accesses, grown > 0


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
        ("the paper: proposed", "621,172", "671,210", "8.05 %", "–", "16,072 (“mJ”)"),
        ("the paper: Linux", "621,172", "1,793,611", "188.74 %", "–", "162,488 (“mJ”)"),
    ]
    found: dict[str, dict[str, float]] = {}
    for heap in (FIXED, LISTED, PAGES, LEA):
        of: list[dict[str, Any]] = [dict(replay(trace, recipe_of(heap))) for trace in traces]
        keys = ("requested_peak_bytes", "allocated_peak_bytes", "accesses", "energy_nJ")
        found[heap] = {key: mean(float(one[key]) for one in of) for key in keys}
        requested, used, accesses, energy = found[heap].values()
        share = percent(used / requested - 1, 2)
        rows.append((heap, f"{requested:,.0f}", f"{used:,.0f}", share, f"{accesses:,.0f}", f"{energy:,.0f}"))
    page.table(("allocator", "requested, B", "footprint, B", "fragmentation", "accesses", "energy, nJ"), rows)
    _baseline(page, traces, found[PAGES]["allocated_peak_bytes"])
    wasted = {heap: one["allocated_peak_bytes"] / one["requested_peak_bytes"] - 1 for heap, one in found.items()}
    held = 0.08 <= wasted[FIXED] <= 0.1
    page.claim(f"8.05 % of fragmentation ({FIXED}, the paper's mix)", "8.05 %", percent(wasted[FIXED], 2), held)
    near = abs(wasted[PAGES] - 1.8874) < 0.25
    page.claim(f"188.74 % of Linux ({PAGES}, the paper's mix)", "188.74 %", percent(wasted[PAGES], 2), near)
    for heap in (FIXED, LISTED):
        saved = 1 - found[heap]["energy_nJ"] / found[LEA]["energy_nJ"]
        claim = f"90.1 % less energy than Linux ({heap} against {LEA}, the paper's mix)"
        page.claim(claim, "90.1 %", _less(saved), saved > 0.85)


def _baseline(page: Page, traces: Sequence[Trace], footprint: float) -> None:
    """How the paper's 188.74 % come about: the blocks that the packets of its mix take."""
    pool = load(PAGES).pools[0]
    assert isinstance(pool, Fixed)
    sizes = [trace.size[trace.op == MALLOC] for trace in traces]
    rows, smaller = [], 0
    for block in pool.sizes:
        inside = [of[(of > smaller) & (of <= block)] for of in sizes]
        count, asked = mean(len(of) for of in inside), mean(int(of.sum()) for of in inside)
        told = (f"{count:,.0f}", f"{asked:,.0f}", f"{count * block:,.0f}", f"{count * block - asked:,.0f}")
        rows.append((f"{smaller + 1}–{block} B", *told))
        smaller = block
    share = mean(float((of > pool.sizes[-2]).mean()) for of in sizes)
    rest = mean(float(of[of <= pool.sizes[-2]].mean()) for of in sizes)
    more = (LINUX_BYTES - footprint) / LIMIT / (pool.sizes[-1] - rest)
    page.text(
        f"**Where the paper's 188.74 % come from.** What each class of {PAGES} takes for {LIMIT:,} packets of the mix, "
        "headers left out:"
    )
    page.table(("packets of", "packets", "requested, B", "blocks, B", "wasted, B"), rows)
    page.text(
        f"Nearly all is wasted in pages of {pool.sizes[-1]:,} bytes that hold one packet: any packet above "
        f"{pool.sizes[-2]:,} bytes takes one, and the rest of the page stays unused. In the even mix {percent(share)} "
        f"of the packets do, and the model takes {footprint:,.0f} bytes; the paper's {LINUX_BYTES:,} need about "
        f"{percent(share + more)}. The paper gives the shares of two sizes alone, so its other packets may well have "
        f"been larger than an even spread has them. No allocator that splits pages, as {LEA} does, comes near."
    )
    page.text(
        "**Where its energy and time come from.** The paper's own pools walk over the used blocks of a pool, hundreds "
        "of them in a queue of 1,000 packets: that alone takes more accesses than all other allocators here. Its "
        "savings must be against a baseline that walks as far in a larger memory. With a free list in each pool they "
        "come from fewer accesses than Lea's, as far as they come."
    )


def _bars(networks: list[Network], value: Callable[[Network, str], float], name: str, axis: str, style: str) -> Any:
    import altair as alt

    from heapwright.report.figure import BLUE, CLOUD, INK, VERMILLION, Figure, inline

    shown = (FIXED, TUNED, LISTED, PAGES, LEA)
    rows = [
        {"network": network.name, "heap": heap, "value": value(network, heap)} for network in networks for heap in shown
    ]
    log = style != "%" and all(value(network, heap) > 0 for network in networks for heap in shown)
    colours = alt.Scale(domain=shown, range=[BLUE, INK, BLUE, VERMILLION, CLOUD])
    chart = (
        inline(rows)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            x=alt.X(
                "value:Q", title=axis, axis=alt.Axis(format=style), scale=alt.Scale(type="log" if log else "linear")
            ),
            y=alt.Y("network:N", title=None, axis=alt.Axis(grid=True)),
            yOffset=alt.YOffset("heap:N", sort=list(shown)),
            color=alt.Color("heap:N", sort=None, scale=colours, legend=alt.Legend(columns=2, labelLimit=280)),
            shape=alt.Shape("heap:N", sort=None, scale=alt.Scale(domain=shown)),
        )
    )
    title = axis[0].upper() + axis[1:]
    note = f"A queue of {LIMIT:,} packets filled and emptied once, on each network{'; logarithmic' if log else ''}."
    return Figure(name, title, note, chart.properties(height=36 * len(networks)), 620)


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
        f"within 2 points on {close} of {len(networks)}; {100 * mean(changes):.0f} points off on average",
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
    for heap in (FIXED, TUNED, LISTED):
        total = _total(networks, heap, "allocated_peak_bytes") / _total(networks, heap, "requested_peak_bytes") - 1
        page.claim(f"8.05 % of fragmentation ({heap})", "8.05 %", percent(total, 1), total <= 0.1)
        _against_linux(page, networks, heap)


def _against_linux(page: Page, networks: list[Network], heap: str) -> None:
    """Memory against the baseline that explains the paper's footprint; what splitting costs against Lea's."""
    for what, key, theirs, baseline in (
        ("memory", "allocated_peak_bytes", 0.6258, PAGES),
        ("energy", "energy_nJ", 0.9011, LEA),
    ):
        saved = 1 - _total(networks, heap, key) / _total(networks, baseline, key)
        claim = f"{percent(theirs, 1)} less {what} than Linux ({heap} against {baseline})"
        page.claim(claim, percent(theirs, 1), _less(saved), saved >= theirs - 0.05)
    faster = 1 - sum(n.ns[heap] for n in networks) / sum(n.ns[LEA] for n in networks)
    page.claim(f"60.2 % faster than Linux ({heap} against {LEA})", "60.2 %", _less(faster), faster >= 0.55)


def _check_code(page: Page, codes: Mapping[str, Any]) -> None:
    large, small = (_code_bytes(codes[FIXED], level) for level in LEVELS)
    if large is not None and small is not None:
        ours = f"{large:,} bytes at -O0, {small:,} at -Os"
        page.claim("the object code grows by 11.4 KByte", "11.4 KByte", ours, large <= 11_400)


def _less(saved: float) -> str:
    return percent(saved, 1) if saved >= 0 else f"{1 - saved:.3g} times as much"


def _total(networks: list[Network], heap: str, key: str) -> float:
    return sum(float(network.metrics[heap][key]) for network in networks)
