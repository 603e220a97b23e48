"""What becomes of the statements about pools for the packets of a network; the numbers are those of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from statistics import mean
from typing import TYPE_CHECKING, Any

from heapwright import zoo
from heapwright.recipes.pools import Fixed
from heapwright.recipes.zoo.special_pools import special_pools
from heapwright.traces.profile import FREQUENT_SHARE
from heapwright.traces.validation import MALLOC
from heapwright.traffic.synthetic import synthesise
from heapwright.traffic.workloads.queue import LIMIT, queue
from heapwright_papers import wifi_runs as wifi
from heapwright_papers.measuring import replayed
from heapwright_papers.page import Page, percent
from heapwright_papers.verdicts import HOLDS, SHOWN, Cause, Verdict, fails, judge, not_tested

if TYPE_CHECKING:
    from heapwright_papers.wifi_runs import Foretold, Measured, Results

MIX, REAL = "the paper's mix", "real networks"
LINUX_BYTES, PROPOSED_BYTES, REQUESTED_BYTES = 1_793_611, 671_210, 621_172
ENERGY, LINUX_ENERGY = 16_072, 162_488
OBJECT_CODE = 11_400
"""The paper's numbers (section 5)."""
TOLERANCE = 0.1
UNTOLD = "which Linux it measured the paper does not tell"
NO_TOOLS = "no cross compiler or emulator is installed"


def answer(page: Page, results: Results, foretold: Sequence[Foretold]) -> None:
    """Answer every statement of the page."""
    _sizes(page, results)
    _samples(page, results, foretold)
    _pools(page, results, foretold)
    _search(page, results)
    _example(page)
    _time(page, results)
    _linux(page, results)
    _memory(page, results)
    _energy(page, results)
    _code(page, results)


def _near(ours: float, theirs: float) -> bool:
    return abs(ours / theirs - 1) <= TOLERANCE


# ---- section 3: sizes ------------------------------------------------------------------------------------------------


def _sizes(page: Page, results: Results) -> None:
    page.verdict("wifi-figure-1", "the sizes of each table", SHOWN)
    packets = 65535 / 1460
    page.verdict("wifi-45-packets", f"{packets:.2f}, {ceil(packets)} packets", judge(ceil(packets) == 45, _unexplained))
    networks = results.networks
    two = [n for n in networks if sum(share >= FREQUENT_SHARE for share in n.shares.values()) >= 2]
    page.verdict(
        "wifi-bimodal",
        f"two sizes or more with at least 10 % each on {len(two)} of {len(networks)} networks",
        judge(len(two) == len(networks), _traffic(f"on {len(networks) - len(two)} networks fewer than two sizes do")),
    )
    special = [n for n in networks if {size for size, share in n.shares.items() if share >= FREQUENT_SHARE} != _TWO]
    page.verdict(
        "wifi-others-vary",
        f"on {len(special)} of {len(networks)} networks the sizes with at least 10 % are others than {_WORDS}",
        judge(bool(special), _traffic(f"all have {_WORDS}")),
    )
    distinct = [int(n.profile["distinct_sizes"]) for n in networks]
    many = sum(count > 1200 for count in distinct)
    page.verdict(
        "wifi-distinct-sizes",
        f"on {many} of {len(networks)} networks; {min(distinct):,} to {max(distinct):,} sizes",
        judge(many == len(networks), _traffic(f"{min(distinct):,} sizes on one network")),
    )
    _modes(page, results)


_TWO = {wifi.ACK, wifi.MTU}
_WORDS = f"{wifi.ACK} and {wifi.MTU} bytes"


def _traffic(why: str) -> Verdict:
    return fails(Cause.TRAFFIC, why)


_unexplained = fails(Cause.UNEXPLAINED, "the division gives another number")


def _modes(page: Page, results: Results) -> None:
    """The two sizes of the paper, on networks whose packets show their IP lengths."""
    ip = [network for network in results.networks if network.is_ip]
    asked = ("not-mtu", "ack-share", "ack-most-popular", "mtu-second", "mtu-share", "no-others", "each-size")
    if not ip:
        for statement in asked:
            page.verdict(f"wifi-{statement}", "–", not_tested("no table shows IP lengths"))
        return
    count = len(ip)
    ack, mtu = wifi.samples(ip)
    page.verdict(
        "wifi-not-mtu", f"{percent(1 - mtu)} of the packets of {count} networks do not", judge(mtu < 0.5, _mtu)
    )
    apart = max(float(n.shares.get(wifi.ACK, 0.0)) for n in ip)
    page.verdict(
        "wifi-ack-share",
        f"{percent(ack)} on {count} networks",
        judge(_near(ack, wifi.ACK_SHARE), _traffic(f"0 to {percent(apart)} on single networks")),
    )
    page.verdict(
        "wifi-mtu-share",
        f"{percent(mtu)} on {count} networks",
        judge(_near(mtu, wifi.MTU_SHARE), _traffic(f"at most {percent(max(n.shares.get(wifi.MTU, 0.0) for n in ip))}")),
    )
    first, second = (
        sum(len(n.profile["modes"]) > at and n.profile["modes"][at]["size"] == size for n in ip)
        for at, size in enumerate((wifi.ACK, wifi.MTU))
    )
    for statement, found in (("ack-most-popular", first), ("mtu-second", second)):
        told = f"on {found} of {count} networks"
        page.verdict(f"wifi-{statement}", told, judge(found == count, _traffic(f"not on {count - found}")))
    others = [n for n in ip if any(share >= FREQUENT_SHARE for size, share in n.shares.items() if size not in _TWO)]
    page.verdict(
        "wifi-no-others",
        f"other sizes have 10 % or more on {len(others)} of {count} networks",
        judge(not others, _traffic(f"small packets of other sizes are frequent on {len(others)} networks")),
    )
    rest = [(1 - n.profile["top_two_share"]) / max(n.profile["distinct_sizes"] - 2, 1) for n in ip]
    page.verdict(
        "wifi-each-size",
        f"{percent(mean(rest), 2)} for a size beside the first two",
        judge(_near(mean(rest), 0.0002), _traffic("with far fewer sizes each has a larger share")),
    )


_mtu = fails(Cause.TRAFFIC, "most packets are full")


def _samples(page: Page, results: Results, foretold: Sequence[Foretold]) -> None:
    ip = [network for network in results.networks if network.is_ip]
    if ip:
        parts = [wifi.samples(ip, count) for count in wifi.SAMPLES]
        spread = [max(part[at] for part in parts) - min(part[at] for part in parts) for at in (0, 1)]
        page.verdict(
            "wifi-samples",
            f"{100 * spread[0]:.1f} points for {wifi.ACK} bytes, {100 * spread[1]:.1f} for {wifi.MTU}",
            judge(max(spread) < 0.02, _traffic(f"{len(ip)} networks of several kinds do not average so much out")),
        )
    else:
        page.verdict("wifi-samples", "–", not_tested("no table shows IP lengths"))
    near = sum(one.first <= one.rest + 0.05 for one in foretold)
    page.verdict(
        "wifi-small-samples",
        f"pools chosen from them waste {percent(mean(one.first for one in foretold))} on later packets, pools of "
        f"hindsight {percent(mean(one.rest for one in foretold))}; at most 5 points more on {near} of {len(foretold)} "
        "networks",
        judge(near > len(foretold) / 2, _traffic(f"more than 5 points more on {len(foretold) - near} networks")),
        on=REAL,
    )


# ---- section 4: the pools --------------------------------------------------------------------------------------------


def _pools(page: Page, results: Results, foretold: Sequence[Foretold]) -> None:
    pool = special_pools(wifi.paper_mix()).pools[0]
    assert isinstance(pool, Fixed)
    page.verdict(
        "wifi-special-sizes",
        ", ".join(map(str, pool.sizes)),
        judge(pool.sizes == (40, 64, 128, 256, 512, 1024, 1500), fails(Cause.CHOICE, "the rule is read otherwise")),
        on=MIX,
    )
    page.verdict(
        "wifi-popular-exact",
        f"blocks of {wifi.ACK} and of {wifi.MTU} bytes",
        judge(set(pool.sizes) >= _TWO, _unexplained),
        on=MIX,
    )
    wasted = results.average(wifi.POOLS, "allocated") - results.average(wifi.POOLS, "requested")
    asked = mean(_others(trace.size[trace.op == MALLOC]) for trace in results.mix)
    page.verdict(
        "wifi-reasonable",
        f"they waste {percent(wasted / asked)} of what they ask for",
        not_tested("the paper gives no bound"),
        on=MIX,
    )
    external = max(one.external for one in results.drawn[wifi.POOLS])
    page.verdict(
        "wifi-no-external",
        f"{external} bytes where the queue is filled once",
        judge(external == 0, fails(Cause.UNEXPLAINED, f"{external} bytes are in no block in use")),
        on=MIX,
    )
    once, kept = (mean(getattr(one, key) for one in foretold) for key in ("first", "kept"))
    page.verdict(
        "wifi-no-external",
        f"pools that keep what they took for one queue after another waste {percent(kept)}, for one queue "
        f"{percent(once)}",
        judge(kept < 1.1 * once, _traffic("filled again and again with other sizes, pools keep blocks of no use")),
        on=REAL,
    )
    powers = zoo(wifi.PAGES).pools[0].model_copy(update={"sizes": (64, 128, 256, 512, 1024, 2048)})
    plain = zoo(wifi.PAGES).model_copy(update={"pools": (powers, *zoo(wifi.PAGES).pools[1:])})
    without = mean(one.fragmentation for one in wifi.run(plain, results.mix, 0))
    ours = wasted / results.average(wifi.POOLS, "requested")
    page.verdict(
        "wifi-no-splitting",
        f"powers of two alone waste {percent(without, 1)}, with the special sizes {percent(ours, 1)}: "
        f"{percent(1 - ours / without)} less",
        judge(ours < without / 2, fails(Cause.CHOICE, "less than half of the waste goes")),
        on=MIX,
    )


def _others(sizes: Any) -> int:
    return int(sizes[(sizes != wifi.ACK) & (sizes != wifi.MTU)].sum())


def _search(page: Page, results: Results) -> None:
    accesses = {heap: results.average(heap, "accesses") / (2 * LIMIT) for heap in wifi.HEAPS}
    page.verdict(
        "wifi-mechanisms",
        f"pools with free lists {accesses[wifi.LISTED]:.1f} accesses a call, Lea's, which splits and coalesces, "
        f"{accesses[wifi.LEA]:.1f}",
        judge(accesses[wifi.LISTED] < accesses[wifi.LEA], fails(Cause.UNEXPLAINED, "they take no more")),
        on=MIX,
    )
    pool = special_pools(wifi.paper_mix()).pools[0]
    assert isinstance(pool, Fixed)
    told = f"none, at most {len(pool.sizes)} comparisons with constants of the code"
    page.verdict("wifi-eight-accesses", told, HOLDS)
    page.verdict(
        "wifi-least-accesses",
        f"{accesses[wifi.POOLS]:.1f} accesses a call; with a list of free blocks a pool {accesses[wifi.LISTED]:.1f}",
        fails(Cause.CHOICE, f"a list of free blocks, of which the paper is silent, takes {accesses[wifi.LISTED]:.1f}"),
        on=MIX,
    )
    half, whole = (_one_pool(limit) for limit in (LIMIT // 2, LIMIT))
    page.verdict(
        "wifi-exponential",
        f"one pool for all sizes takes {whole:,} accesses, for half the packets {half:,}",
        fails(Cause.UNEXPLAINED, f"twice the packets take {whole / half:.1f} times the accesses, a square"),
        on=MIX,
    )


def _one_pool(limit: int) -> int:
    """Accesses where the walk has one pool for all sizes."""
    recipe = wifi.pools_of({"name": "one pool", "sizes": [{"size": wifi.MTU, "share": 1.0}]})
    trace = queue(synthesise(wifi.paper_mix(), seed=1), limit=limit)
    return int(replayed(trace, recipe)["accesses"] or 0)


def _example(page: Page) -> None:
    page.verdict("wifi-figure-2", "blocks and accesses of the same requests", SHOWN)
    block, accesses, grew = wifi.figure_2(1000)
    page.verdict(
        "wifi-example-1000",
        f"the block of {block} bytes that is free, after {accesses} accesses",
        judge(block == 1024 and not grew, fails(Cause.CHOICE, "it takes another block")),
    )
    block, _, _ = wifi.figure_2(1200)
    page.verdict("wifi-example-1200", f"{block} bytes", judge(block == 1500, fails(Cause.CHOICE, "another block")))


# ---- section 5: time -------------------------------------------------------------------------------------------------


def _time(page: Page, results: Results) -> None:
    page.verdict("wifi-figure-3", "fragmentation, energy and instructions on each network", SHOWN)
    drawn = {heap: results.instructions(heap) for heap in (wifi.POOLS, wifi.LEA, wifi.WALK)}
    real = {heap: [one.instructions for one in results.real[heap].values()] for heap in (wifi.POOLS, wifi.LEA)}
    if not drawn[wifi.POOLS] or any(value is None for of in real.values() for value in of):
        for statement in ("time-flat", "linux-time", "performance", "performance-up-to", "128-pools"):
            page.verdict(f"wifi-{statement}", "–", not_tested(NO_TOOLS))
        return
    known = {heap: [float(value or 0) for value in of] for heap, of in real.items()}
    page.verdict("wifi-time-flat", _range(drawn[wifi.POOLS]), _flat(drawn[wifi.POOLS]), on=MIX)
    page.verdict("wifi-time-flat", _range(known[wifi.POOLS]), _flat(known[wifi.POOLS]), on=REAL)
    ratio, walked = (mean(drawn[heap]) / mean(drawn[wifi.POOLS]) for heap in (wifi.LEA, wifi.WALK))
    page.verdict(
        "wifi-linux-time",
        f"Lea's: {_range(drawn[wifi.LEA])}, {ratio:.2f} times the pools'",
        judge(
            ratio > 2,
            fails(Cause.CHOICE, f"{UNTOLD}; a best fit over all blocks takes {walked:.2f} times the pools'"),
        ),
        on=MIX,
    )
    for on, pools, lea in ((MIX, drawn[wifi.POOLS], drawn[wifi.LEA]), (REAL, known[wifi.POOLS], known[wifi.LEA])):
        told, best = 1 - sum(pools) / sum(lea), max(1 - mine / theirs for mine, theirs in zip(pools, lea, strict=True))
        why = fails(
            Cause.CHOICE, f"{UNTOLD}; against a best fit over all blocks {percent(1 - 1 / walked, 1)} on the mix"
        )
        page.verdict("wifi-performance", f"{_less(told)} Lea's", judge(told >= 0.9 * 0.6018, why), on=on)
        page.verdict("wifi-performance-up-to", f"{_less(best)} Lea's", judge(best >= 0.9 * 0.8197, why), on=on)
    listed, lea_ = (mean(results.instructions(heap)) / LIMIT for heap in (wifi.LISTED, wifi.LEA))
    page.verdict(
        "wifi-128-pools",
        f"a packet takes {listed:.0f} instructions with 7 pools and free lists, {lea_:.0f} with Lea's 96 bins",
        judge(listed < lea_, fails(Cause.UNEXPLAINED, "it is not")),
        on=MIX,
    )


def _range(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f} instructions"


def _flat(values: Sequence[float]) -> Verdict:
    spread = max(values) / min(values)
    return judge(
        spread < 1.25, _traffic(f"the walk is {spread:.1f} times as long where nearly all packets have one size")
    )


def _less(saved: float) -> str:
    return f"{percent(saved, 1)} less than" if saved >= 0 else f"{1 - saved:.3g} times as much as"


def _linux(page: Page, results: Results) -> None:
    """What the paper tells of how its Linux works."""
    lea = results.drawn[wifi.LEA]
    more = mean(one.fragmentation for one in lea)
    nothing = fails(
        Cause.CHOICE, f"{UNTOLD}; Lea's has no blocks of 64 or 4096 bytes, its blocks take {percent(more, 2)} more"
    )
    page.verdict("wifi-linux-splits", "filling a queue leaves Lea's nothing to split", nothing, on=MIX)
    page.verdict("wifi-linux-coalesces", "nothing is split, so nothing that was is put together", nothing, on=MIX)
    first, best = (results.average(heap, "accesses") for heap in (wifi.POOLS, wifi.WALK))
    page.verdict(
        "wifi-first-fit-faster",
        f"{first:,.0f} accesses, a best fit over all blocks {best:,.0f}",
        judge(first < best, fails(Cause.UNEXPLAINED, "it is not")),
        on=MIX,
    )


# ---- section 5: memory and energy ------------------------------------------------------------------------------------


def in_pages(results: Results) -> tuple[float, float]:
    """The share of packets of the mix that take a page in the Linux model, and what the paper's bytes need."""
    pool = zoo(wifi.PAGES).pools[0]
    assert isinstance(pool, Fixed)
    *_, below, page = pool.sizes
    sizes = [trace.size[trace.op == MALLOC] for trace in results.mix]
    share = mean(float((of > below).mean()) for of in sizes)
    rest = mean(float(of[of <= below].mean()) for of in sizes)
    more = (LINUX_BYTES - results.average(wifi.PAGES, "allocated")) / LIMIT / (page - rest)
    return share, share + more


def _memory(page: Page, results: Results) -> None:
    requested, pools = (results.average(wifi.POOLS, key) for key in ("requested", "allocated"))
    linux = results.average(wifi.PAGES, "allocated")
    theirs = (REQUESTED_BYTES / LIMIT - wifi.ACK_SHARE * wifi.ACK - wifi.MTU_SHARE * wifi.MTU) / _REST
    even = (wifi.ACK + wifi.MTU) / 2
    silent = fails(
        Cause.CHOICE,
        f"the sizes of the other 31 % are not told: its bytes leave them a mean of {theirs:.0f}, the even mix has "
        f"{even:.0f}",
    )
    for statement, ours, paper in (
        ("requested", requested, REQUESTED_BYTES),
        ("footprint", pools, PROPOSED_BYTES),
        ("linux-footprint", linux, LINUX_BYTES),
    ):
        page.verdict(f"wifi-{statement}", f"{ours:,.0f} bytes", judge(_near(ours, paper), silent), on=MIX)
    wasted = [one.fragmentation for one in results.drawn[wifi.POOLS]]
    ours = pools / requested - 1
    told = f"{percent(ours, 2)}, {percent(min(wasted), 2)} to {percent(max(wasted), 2)} in {len(wasted)} draws"
    page.verdict("wifi-fragmentation", told, judge(_near(ours, 0.0805), silent), on=MIX)
    real = results.total(wifi.POOLS, "allocated") / results.total(wifi.POOLS, "requested") - 1
    page.verdict("wifi-fragmentation", percent(real, 1), judge(_near(real, 0.0805), _few(results)), on=REAL)
    wasted = [one.fragmentation for one in results.drawn[wifi.PAGES]]
    share, needed = in_pages(results)
    larger = fails(
        Cause.CHOICE,
        f"the sizes of the other 31 % are not told: {percent(share)} of the even mix take a page, its number needs "
        f"{percent(needed)}",
    )
    ours = linux / requested - 1
    told = f"{percent(ours, 2)}, {percent(min(wasted), 2)} to {percent(max(wasted), 2)} in {len(wasted)} draws"
    page.verdict("wifi-linux-fragmentation", told, judge(_near(ours, 1.8874), larger), on=MIX)
    saved = 1 - pools / linux
    page.verdict("wifi-memory-saved", percent(saved, 1), judge(_near(saved, 0.6258), larger), on=MIX)
    saved = 1 - results.total(wifi.POOLS, "allocated") / results.total(wifi.PAGES, "allocated")
    small = _traffic("where few packets are above 1024 bytes few take a page")
    page.verdict("wifi-memory-saved", percent(saved, 1), judge(_near(saved, 0.6258), small), on=REAL)


_REST = 1 - wifi.ACK_SHARE - wifi.MTU_SHARE


def _few(results: Results) -> Verdict:
    above = sum(one.fragmentation > 0.0805 * (1 + TOLERANCE) for one in results.real[wifi.POOLS].values())
    return _traffic(f"packets of many sizes without a pool of their own: above it on {above} networks")


def _energy(page: Page, results: Results) -> None:
    pools, lea, walk = (results.average(heap, "energy") for heap in (wifi.POOLS, wifi.LEA, wifi.WALK))
    accesses = {heap: results.average(heap, "accesses") for heap in (wifi.POOLS, wifi.LEA, wifi.WALK)}
    each = pools / accesses[wifi.POOLS]
    model = fails(
        Cause.CHOICE,
        f"its memory model is not told: {each:.3f} nJ an access here, its number needs "
        f"{ENERGY / accesses[wifi.POOLS]:.3f}",
    )
    page.verdict("wifi-energy", f"{pools:,.0f} nJ", judge(_near(pools, ENERGY), model), on=MIX)
    untold = fails(
        Cause.CHOICE,
        f"{UNTOLD}; a best fit over all blocks takes {walk:,.0f} nJ, against which the pools save "
        f"{percent(1 - pools / walk, 1)}",
    )
    page.verdict("wifi-linux-energy", f"Lea's: {lea:,.0f} nJ", judge(_near(lea, LINUX_ENERGY), untold), on=MIX)
    page.verdict(
        "wifi-energy-saved",
        f"{_less(1 - pools / lea)} Lea's",
        judge(_near(1 - pools / lea, 0.9011), untold),
        on=MIX,
    )
    real = 1 - results.total(wifi.POOLS, "energy") / results.total(wifi.LEA, "energy")
    page.verdict("wifi-energy-saved", f"{_less(real)} Lea's", judge(_near(real, 0.9011), untold), on=REAL)
    fewer = accesses[wifi.POOLS] < accesses[wifi.LEA]
    page.verdict(
        "wifi-fewer-accesses",
        f"{accesses[wifi.POOLS]:,.0f}, Lea's {accesses[wifi.LEA]:,.0f}",
        judge(fewer, fails(Cause.CHOICE, f"{UNTOLD}; a best fit over all blocks takes {accesses[wifi.WALK]:,.0f}")),
        on=MIX,
    )
    linux = results.drawn[wifi.PAGES]
    larger = mean(one.energy / one.accesses for one in linux)
    page.verdict(
        "wifi-smaller-memory",
        f"{each:.3f} nJ an access, in the memory of {wifi.PAGES} {larger:.3f}",
        judge(each < larger, fails(Cause.UNEXPLAINED, "it does not")),
        on=MIX,
    )
    page.verdict(
        "wifi-no-compromise",
        f"memory {_less(1 - results.average(wifi.POOLS, 'allocated') / results.average(wifi.PAGES, 'allocated'))} "
        f"{wifi.PAGES}, energy {_less(1 - pools / lea)} Lea's, {_less(1 - pools / walk)} a best fit over all "
        "blocks",
        judge(pools <= lea, fails(Cause.CHOICE, f"{UNTOLD}; Lea's takes {lea:,.0f} nJ, the pools' walk {pools:,.0f}")),
        on=MIX,
    )


# ---- section 5: object code ------------------------------------------------------------------------------------------


def code_bytes(codes: Mapping[str, Any] | None, level: str) -> int | None:
    """Bytes of code and constant data at a level of optimisation; None without a compiler."""
    return None if codes is None else int(codes[level].text + codes[level].data)


def _code(page: Page, results: Results) -> None:
    large, small = (code_bytes(results.codes, level) for level in wifi.LEVELS)
    if large is None or small is None:
        for statement in ("wifi-object-code", "wifi-trade-off"):
            page.verdict(statement, "–", not_tested(NO_TOOLS))
        return
    page.verdict(
        "wifi-object-code",
        f"{large:,} bytes at -O0, {small:,} at -Os",
        judge(
            _near(large, OBJECT_CODE),
            fails(Cause.CHOICE, f"compiler and processor are not told: {large:,} bytes even without optimisation"),
        ),
    )
    saved = _saved(results.drawn[wifi.PAGES], results.drawn[wifi.POOLS])
    page.verdict(
        "wifi-trade-off",
        f"{large:,} bytes at most, against {saved:,.0f} bytes of memory less than {wifi.PAGES}",
        judge(large < saved / 10, fails(Cause.CHOICE, f"{large:,} bytes are not little beside {saved:,.0f}")),
        on=MIX,
    )


def _saved(linux: Sequence[Measured], pools: Sequence[Measured]) -> float:
    return mean(one.allocated for one in linux) - mean(one.allocated for one in pools)
