"""The sizes of packets, and pools for them under a transmit queue.

Mamagkakis, Soudris and Catthoor 2007, "Middleware design optimization of wireless protocols based on the exploitation
of dynamic input patterns".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

import heapwright as hw
from heapwright import MALLOC, synthesise, zoo
from heapwright_papers import wifi_pictures, wifi_runs
from heapwright_papers.answers import NO_PACKETS, percent
from heapwright_papers.case_study import mutants
from heapwright_papers.measuring import CPU, cell, code_bytes, replayed
from heapwright_papers.page import Page
from heapwright_papers.traffic import marked, packet_tables
from heapwright_papers.wifi_runs import (
    ACK,
    DRAWS,
    HEAPS,
    LEA,
    LEVELS,
    LIMIT,
    LISTED,
    MTU,
    PAGES,
    POOLS,
    PUBLISHED,
    SAMPLE,
    SAMPLES,
    SMALL_MOST,
    SPECIAL_POOLS,
    TIMED_DRAWS,
    WALK,
    Foretold,
    Network,
    Results,
    figure_2,
    foretell,
    measure,
    network_of,
    paper_mix,
    pools_of,
    run,
    samples,
)

PAPER = "Mamagkakis et al. 2007"
_INTRODUCTION = f"""\
{PAPER} characterise 18 networks of the Dartmouth campus and propose pools for their packets. Those traces are not to be
had; {{count}} packet tables stand in. Where a table has IP packets, sizes are those of IP packets, as in the paper;
the tables of 802.11 frames, whose payload is encrypted, have pools for the sizes of their frames: the paper wants the
procedure to be followed for each kind of network.

- **{POOLS}** are the paper's: a pool for each size of at least 10 % of the packets, powers of two from the first that
  holds the smallest packet, and a pool for the largest. On the paper's own mix that gives its seven pools. Blocks lie
  side by side without headers, and each has a byte outside that says whether it is in use: with blocks of one size,
  the walk of the paper's Figure 2 then needs one access for a block. Each pool has as many as the queue can hold.
- **{SPECIAL_POOLS}** of the zoo has the same walk in pools that grow, so that its blocks are chained in headers: two
  accesses for a block.
- **{LISTED}** are the same pools, each with a list of its free blocks in place of the walk.
- **{PAGES}** is a Linux as its memory in section 5 implies it: a 40-byte packet takes a block of 64 bytes, one of
  1500 a page of 4096, and the rest of a page stays unused. **{LEA}** is Linux's allocator as published. **{WALK}**
  is the Linux that our verdicts on time and energy are taken against: it
  searches as section 5 tells, best fit through everything, with splitting and coalescing; as a queue that is
  being filled has no free blocks, it looks at used ones, too, as the paper's pools do. The paper does not say which
  Linux it measured, and no one of the three has its memory, its time and its energy.

Fragmentation leaves headers out, as the paper's numbers do. Energy is that of all accesses in an SRAM of the size of
the blocks (90 nm). The paper's unit, millijoule, is taken for a slip of nanojoule: its 16,072 over the accesses counted
here are 0.09 an access, what such a memory takes in nJ. Time is instructions of the generated code on an emulated
{CPU}, all calls together."""


def page(packets: Path | None, progress: Callable[[str], None]) -> Page:
    """Figures 1 to 3, on the paper's own mix and on every packet table of the folder; and what its rule foretells.

    Raises HeapwrightError as `heapwright_papers.traffic.packet_tables`.
    """
    networks = [network_of(name, table) for name, table in packet_tables(packets).items()]
    results = measure(networks, progress)
    progress("wifi: pools of the first packets")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        foretold = list(pool.map(foretell, networks))
    made = Page("wifi", "Pools for the packets of a network", PAPER)
    for network in networks:
        made.traffic(network.name, network.table)
    made.text(_INTRODUCTION.format(count=len(networks)))
    if networks:
        _sizes(made, networks)
    _example(made)
    _paper_mix(made, results)
    if networks:
        _real_networks(made, results)
        _foretold(made, foretold)
    _object_code(made, results)
    made.judge(_names(results, foretold))
    progress("wifi: other allocators in the pools' place")
    made.mutate(mutants("wifi"), lambda _, other: _names(results.with_pools(other), foretold))
    return made


FREQUENT_SHARE = 0.1
"""Share of the packets from which a size has a pool of its own (section 4, A)."""
MIX, REAL = "the paper's mix", "real networks"
LINUX_BYTES, REQUESTED_BYTES = 1_793_611, 621_172
"""The paper's numbers (section 5)."""
UNTOLD = "which Linux it measured the paper does not tell"
NO_TOOLS = "no cross compiler or emulator is installed"


def _names(results: Results, foretold: Sequence[Foretold]) -> dict[str, Any]:
    """What the statements' expressions see: the results, probes of single pools, and the constants of the runs."""
    ip = [network for network in results.networks if network.is_ip]
    ack, mtu = samples(ip) if ip else (0.0, 0.0)
    real = {heap: [one.instructions for one in results.real[heap].values()] for heap in (POOLS, WALK)}
    drawn = {heap: results.instructions(heap) for heap in HEAPS}
    untimed = not drawn[POOLS] or any(value is None for of in real.values() for value in of)
    special = pools_of(paper_mix()).pools[0]
    assert isinstance(special, hw.pools.Fixed)
    asked = [trace.size[trace.op == MALLOC] for trace in results.mix]
    known = {
        **{name: value for name, value in vars(wifi_runs).items() if name.isupper()},
        **{name: value for name, value in globals().items() if name.isupper()},
        **vars(results),
        **{name: getattr(results, name) for name in ("average", "instructions", "total")},
        "FREQUENT_SHARE": FREQUENT_SHARE,
        "foretold": foretold,
        "no_ip": "" if ip else "no table shows IP lengths",
        "no_times": NO_TOOLS if untimed else "",
        "no_codes": NO_TOOLS if results.codes is None else "",
        "codes": [code_bytes(results.codes, level) for level in LEVELS],
        "ip": ip,
        "ack": ack,
        "mtu": mtu,
        "samples": samples,
        "special": special.sizes,
        "others": mean(int(of[(of != ACK) & (of != MTU)].sum()) for of in asked),
        "powers": _powers(results),
        "cost": {heap: results.average(heap, "accesses") / (2 * LIMIT) for heap in HEAPS},
        "one_pool": _one_pool,
        "figure_2": figure_2,
        "timed": {MIX: drawn, REAL: real if results.networks else NO_PACKETS},
        "in_pages": in_pages(results),
        "less": _less,
    }
    return known if results.networks else known | dict.fromkeys(_OF_NETWORKS, NO_PACKETS)


_OF_NETWORKS = ("networks", "real", "total", "foretold", "ip", "samples", "ack", "mtu")
"""What the statements see of real networks."""


def _less(saved: float) -> str:
    return f"{percent(saved, 1)} less than" if saved >= 0 else f"{1 - saved:.3g} times as much as"


def _powers(results: Results) -> float:
    """What pools of powers of two alone waste on the mix."""
    linux = zoo(PAGES)
    plain = linux.pools[0].model_copy(update={"sizes": (64, 128, 256, 512, 1024, 2048)})
    recipe = linux.model_copy(update={"pools": (plain, *linux.pools[1:])})
    return mean(one.fragmentation for one in run(recipe, results.mix, 0))


def _one_pool(limit: int) -> int:
    """Accesses where the walk has one pool for all sizes."""
    recipe = pools_of({"name": "one pool", "sizes": [{"size": MTU, "share": 1.0}]})
    return int(replayed(hw.workload("queue", synthesise(paper_mix(), seed=1), limit=limit), recipe)["accesses"])


def in_pages(results: Results) -> tuple[float, float]:
    """The share of packets of the mix that take a page in the Linux model, and what the paper's bytes need."""
    pool = zoo(PAGES).pools[0]
    assert isinstance(pool, hw.pools.Fixed)
    *_, below, page = pool.sizes
    sizes = [trace.size[trace.op == MALLOC] for trace in results.mix]
    share = mean(float((of > below).mean()) for of in sizes)
    rest = mean(float(of[of <= below].mean()) for of in sizes)
    return share, share + (LINUX_BYTES - results.average(PAGES, "allocated")) / LIMIT / (page - rest)


# ---- pools chosen early --------------------------------------------------------------------------------------------


def _foretold(page: Page, foretold: Sequence[Foretold]) -> None:
    page.text(
        f"## Pools chosen from the first {SAMPLE:,} packets\n\nBeyond the paper, which says that so few packets a "
        f"trace can lead to valid conclusions. Pools are chosen from the first {SAMPLE:,} packets of a network, and "
        "the queue is then filled with all its later packets, a queue after another; fragmentation is the average over "
        "these. Beside them are pools chosen from those later packets themselves, in hindsight, and the paper's own "
        "seven. *Kept* is what the early pools waste where they are not made anew for each queue: without coalescing, "
        "a pool keeps the blocks that it once took, and others cannot have their memory."
    )
    rows = [
        (
            marked(one.name),
            f"{one.packets:,}",
            *(percent(share, 1) for share in (one.first, one.rest)),
            _share(one.published),
            percent(one.kept, 1),
        )
        for one in foretold
    ]
    header = ("network", "later packets", f"first {SAMPLE:,}", "hindsight", "the paper's seven", "kept")
    page.table(header, rows)
    page.figure(wifi_pictures.foretold(foretold, SAMPLE))


def _share(share: float | None) -> str:
    return "–" if share is None else percent(share, 1)


# ---- sizes ---------------------------------------------------------------------------------------------------------


def _sizes(page: Page, networks: Sequence[Network]) -> None:
    page.text("## Sizes (the paper's Figure 1 and section 3)")
    rows = [("the paper (average of 18)", "1,000,000", "IP", "40 B: 43 %", "1500 B: 26 %", "> 1200")]
    for network in networks:
        profile = network.profile
        modes = [f"{mode['size']} B: {percent(mode['share'])}" for mode in profile["modes"]]
        unit = "IP" if network.is_ip else "frames"
        distinct = f"{profile['distinct_sizes']:,}"
        rows.append((marked(network.name), f"{profile['packets']:,}", unit, modes[0], modes[-1], distinct))
    page.table(("network", "packets", "sizes of", "first mode", "second mode", "distinct sizes"), rows, words=1)
    page.figure(wifi_pictures.sizes(networks))
    ip = [network for network in networks if network.is_ip]
    if ip:
        page.text(
            "Section 3 compares samples of each trace by the shares of acknowledgements and of packets of the MTU, "
            f"averaged over all traces. Ours are averages over the {len(ip)} networks with IP packets; one with fewer "
            "packets than the sample counts with all it has."
        )
        rows_of = [(f"first {count:,}", *_shown(samples(ip, count))) for count in SAMPLES]
        page.table(("packets of each network", f"{ACK} B", f"{MTU} B"), [*rows_of, ("all", *_shown(samples(ip)))])


def _shown(shares: Iterable[float]) -> list[str]:
    return [percent(share, 1) for share in shares]


# ---- the example of Figure 2 ---------------------------------------------------------------------------------------


def _example(page: Page) -> None:
    page.text(
        "## The example of Figure 2\n\nTwo blocks of the 1024-byte pool are in use, a third is free. A request for "
        "1000 bytes passes the pools that are too small, then both used blocks, and takes the third, says the paper. "
        "The pool is found by comparing the size with constants of the code, without an access: what follows are "
        "accesses in the pool."
    )
    rows = []
    for size in (1000, 1200, 40, 1500):
        block, accesses, grew = figure_2(size)
        rows.append([f"{size} B", f"{block:,} B", accesses, "fresh memory" if grew else "the free block"])
    page.table(("request", "block", "accesses", "from"), rows)


# ---- the paper's mix -----------------------------------------------------------------------------------------------


def _paper_mix(page: Page, results: Results) -> None:
    page.text(
        f"## A queue filled and emptied: the paper's mix (its Figure 3)\n\n{LIMIT:,} packets whose sizes are drawn as "
        f"section 3 states them (43 % of 40 bytes, 26 % of 1500) and as its totals leave the others: 14 % of 1025 to "
        f"1499 bytes, 17 % of 41 to {SMALL_MOST}. Memory was fitted by that, and is no evidence; time and energy were "
        f"not. Synthetic, averages of {DRAWS} draws, instructions of {TIMED_DRAWS}."
    )
    rows: list[tuple[str, ...]] = [
        ("the paper: proposed", "621,172", "671,210", "8.05 %", "–", "16,072", "< 100 ms"),
        ("the paper: Linux", "621,172", "1,793,611", "188.74 %", "–", "162,488", "> 200 ms"),
    ]
    for heap in HEAPS:
        keys = ("requested", "allocated", "accesses", "energy")
        requested, allocated, accesses, energy = (results.average(heap, key) for key in keys)
        numbers = [f"{value:,.0f}" for value in (requested, allocated)]
        numbers += [percent(allocated / requested - 1, 2), f"{accesses:,.0f}", f"{energy:,.0f}"]
        rows.append((heap, *numbers, cell(mean(results.instructions(heap) or [0]) or None)))
    header = ("allocator", "requested, B", "footprint, B", "fragmentation", "accesses", "energy, nJ", "instructions")
    page.table(header, rows)
    _baseline(page, results)


def _baseline(page: Page, results: Results) -> None:
    """How the paper's 188.74 % come about: the blocks that the packets of its mix take."""
    pool = zoo(PAGES).pools[0]
    assert isinstance(pool, hw.pools.Fixed)
    sizes = [trace.size[trace.op == MALLOC] for trace in results.mix]
    rows, smaller = [], 0
    for block in pool.sizes:
        inside = [of[(of > smaller) & (of <= block)] for of in sizes]
        count, asked = mean(len(of) for of in inside), mean(int(of.sum()) for of in inside)
        told = (f"{count:,.0f}", f"{asked:,.0f}", f"{count * block:,.0f}", f"{count * block - asked:,.0f}")
        rows.append((f"{smaller + 1}–{block} B", *told))
        smaller = block
    share, needed = in_pages(results)
    page.text(
        f"**Where the paper's 188.74 % come from.** What each class of {PAGES} takes for {LIMIT:,} packets of the mix, "
        "headers left out:"
    )
    page.table(("packets of", "packets", "requested, B", "blocks, B", "wasted, B"), rows)
    page.text(
        f"Nearly all is wasted in pages of {pool.sizes[-1]:,} bytes that hold one packet: {percent(share)} of the "
        f"packets take a page; the paper's 1,793,611 bytes need about {percent(needed)}. A page whose rest is split "
        "off and used again, as the text has it, would not waste so much: "
        f"{LEA} and {WALK} split, and waste next to nothing."
    )
    page.text(
        "**Where its time and energy come from.** Filling a queue leaves no free block to search or to split: an "
        f"allocator that keeps its free blocks in lists, as {LEA} does, takes {results.average(LEA, 'accesses'):,.0f} "
        f"accesses for it, far fewer than the pools' walk over used blocks. A Linux that is slower than the pools must "
        f"look at used blocks, too. **{WALK}** does: {_against(results, WALK)}, where the paper has 60.18 % less time "
        f"and 90.11 % less energy. With free lists the pools take {_against(results, LEA, LISTED)}."
    )


def _against(results: Results, baseline: str, heap: str = POOLS) -> str:
    energy = 1 - results.average(heap, "energy") / results.average(baseline, "energy")
    told = f"{percent(energy, 1)} less energy"
    if results.instructions(heap):
        faster = 1 - mean(results.instructions(heap)) / mean(results.instructions(baseline))
        told = f"{percent(faster, 1)} fewer instructions and {told}"
    return f"against it {heap} take {told}" if heap == POOLS else f"{told} than {baseline}"


# ---- real networks -------------------------------------------------------------------------------------------------


def _real_networks(page: Page, results: Results) -> None:
    page.text(
        f"## A queue filled and emptied: real networks\n\nThe first {LIMIT:,} packets of each network, in pools made "
        f"for all of its packets by the paper's rule, in the paper's own seven pools where it has IP packets, and in "
        f"two Linux. Fragmentation:"
    )
    columns = (POOLS, PUBLISHED, PAGES, LEA)
    rows = [
        (marked(name), f"{one.requested:,}", *(_share(_wasted(results, heap, name)) for heap in columns))
        for name, one in results.real[POOLS].items()
    ]
    page.table(("network", "requested, B", *columns), rows)
    page.figure(wifi_pictures.fragmentation(results))
    page.text(f"Energy in nJ, and instructions of all calls on a {CPU}:")
    rows = []
    for name in results.real[POOLS]:
        runs = [results.real[heap][name] for heap in (POOLS, LISTED, LEA)]
        energy, instructions = [f"{one.energy:,.0f}" for one in runs], [cell(one.instructions) for one in runs]
        rows.append((marked(name), *energy, *instructions))
    header = [f"{what}, {heap}" for what in ("nJ", "instructions") for heap in (POOLS, LISTED, LEA)]
    page.table(("network", *header), rows)
    page.figure(wifi_pictures.energy(results))
    if all(one.instructions for one in results.real[POOLS].values()):
        page.figure(wifi_pictures.instructions(results))


def _wasted(results: Results, heap: str, name: str) -> float | None:
    found = results.real[heap].get(name) if heap in results.real else None
    return found.fragmentation if found else None


def _object_code(page: Page, results: Results) -> None:
    sizes = [cell(code_bytes(results.codes, level)) for level in LEVELS]
    page.text(
        "## Object code\n\nThe paper's allocator adds 11.4 KByte to that of the system. Ours, `malloc` and `free` of "
        f"the seven pools with all they call and a general pool for larger requests, has for a {CPU} {sizes[0]} bytes "
        f"at -O0 and {sizes[1]} at -Os."
    )
