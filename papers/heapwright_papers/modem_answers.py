"""What the page about the modem concentrator finds of each statement of its paper."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from heapwright import zoo
from heapwright_papers.modem_runs import (
    BEST_FAST,
    BEST_SLOW,
    BEST_TREE,
    CALLS,
    FIRST_FAST,
    FIRST_SLOW,
    FIRST_TREE,
    FOUR,
    ORDERS,
    SEEDS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    Fit,
    Peak,
    Results,
)
from heapwright_papers.page import Page, percent
from heapwright_papers.verdicts import SHOWN, Cause, Verdict, fails, judge, not_tested, within_noise

_PAIRS = ((FIRST_SLOW, FIRST_FAST), (BEST_SLOW, BEST_FAST))
_TREES = ((FIRST_TREE, FIRST_FAST), (BEST_TREE, BEST_FAST))
_BOTH_FITS: tuple[Fit, Fit] = ("first", "best")
_OF_TIME = (
    "search-previous",
    "constant",
    "first-faster",
    "slowest",
    "fastest",
    "second",
    "free-faster",
    "swap",
    "suitable",
)
_NO_TOOLS = not_tested("no cross compiler or emulator here")


def answer(page: Page, results: Results) -> None:
    """A verdict on every statement of the paper that a run decides."""
    for table in ("modem-table-1", "modem-table-2", "modem-table-3", "modem-figure-5"):
        page.verdict(table, "on the page, beside the paper's", SHOWN)
    _mechanisms(page, results)
    _coalescing(page, results)
    _memory(page, results)
    if all(one.whole is not None for one in results.responses.values()):
        _times(page, results)
        _swaps(page, results)
    else:
        for statement in _OF_TIME:
            page.verdict(f"modem-{statement}", "–", _NO_TOOLS)
    _code(page, results)
    _growth(page, results)


def _unexplained(what: str) -> Verdict:
    return fails(Cause.UNEXPLAINED, what)


# ---- mechanisms ----------------------------------------------------------------------------------------------------


def _mechanisms(page: Page, results: Results) -> None:
    reach = zoo(FOUR[FIRST_FAST]).reach or 1 << 31
    page.verdict(
        "modem-header-reach",
        f"{reach / 2**30:.0f} Gbyte with two flags in the word",
        judge(reach >= 1 << 30, _unexplained(f"{reach:,} bytes")),
    )
    orders = results.orders
    told = "; ".join(
        f"{fit} fit: " + ", ".join(f"{percent(orders[fit, order], 2)} by {order}" for order in ORDERS)
        for fit in _BOTH_FITS
    )
    least = all(orders[fit, "address"] == min(orders[fit, order] for order in ORDERS) for fit in _BOTH_FITS)
    page.verdict(
        "modem-address-order",
        f"fragments of a list of free blocks, means of {len(SEEDS)} seeds: {told}",
        judge(least, _unexplained("another order has fewer fragments")),
    )
    accesses = {label: one.accesses for label, one in results.responses.items()}
    page.verdict(
        "modem-used-visited",
        f"accesses a call with tags: {accesses[FIRST_FAST]:.1f} (first fit) and {accesses[BEST_FAST]:.1f} (best fit), "
        f"{accesses[FIRST_TREE]:.1f} and {accesses[BEST_TREE]:.1f} where links lead from free block to free block",
        judge(
            accesses[FIRST_TREE] < accesses[FIRST_FAST] and accesses[BEST_TREE] < accesses[BEST_FAST],
            _unexplained("links do not save accesses"),
        ),
    )
    apart = max(abs(a.physical - b.physical) for pair in _PAIRS for a, b in _both(results, *pair))
    page.verdict(
        "modem-tags-space",
        f"at most {apart} bytes more with tags, all seeds",
        judge(apart == 0, _unexplained(f"{apart} bytes apart")),
    )


def _both(results: Results, one: str, other: str) -> Iterator[tuple[Peak, Peak]]:
    return zip(results.peaks[one], results.peaks[other], strict=True)


def _coalescing(page: Page, results: Results) -> None:
    splits = results.splits
    page.verdict(
        "modem-immediate-overhead",
        f"{percent(splits['immediate'])} of the mallocs split a block, {percent(splits['deferred'])} with deferred "
        "coalescing",
        judge(splits["immediate"] > splits["deferred"], _unexplained("no more splits")),
    )
    longest = max(one.calls for one in results.lengths)
    calls = CALLS if longest >= CALLS else longest
    cost = {
        (fit, merge): mean(results.length(calls, fit, merge).accesses)
        for fit in _BOTH_FITS
        for merge in ("immediate", "deferred")
    }
    page.verdict(
        "modem-deferred-time",
        f"accesses a call, {calls:,} calls: {cost['first', 'deferred']:.1f} against {cost['first', 'immediate']:.1f} "
        f"(first fit), {cost['best', 'deferred']:.1f} against {cost['best', 'immediate']:.1f} (best fit), slow free; "
        f"with boundary tags immediate coalescing takes {results.responses[FIRST_FAST].accesses:.1f} and "
        f"{results.responses[BEST_FAST].accesses:.1f}",
        judge(
            all(cost[fit, "deferred"] < cost[fit, "immediate"] for fit in _BOTH_FITS),
            _unexplained("deferred coalescing takes more accesses"),
        ),
    )
    wasted = {key: mean(results.length(calls, *key).share("fragments")) for key in cost}
    page.verdict(
        "modem-deferred-memory",
        f"fragments, {calls:,} calls: {percent(wasted['first', 'deferred'], 1)} against "
        f"{percent(wasted['first', 'immediate'], 1)} (first fit), {percent(wasted['best', 'deferred'], 1)} against "
        f"{percent(wasted['best', 'immediate'], 1)} (best fit)",
        judge(
            all(wasted[fit, "deferred"] > wasted[fit, "immediate"] for fit in _BOTH_FITS),
            _unexplained("deferred coalescing has fewer fragments"),
        ),
    )


# ---- memory --------------------------------------------------------------------------------------------------------


def _memory(page: Page, results: Results) -> None:
    for statement, (slow, fast) in zip(("modem-first-same", "modem-best-same"), _PAIRS, strict=True):
        apart = max(abs(a.physical - b.physical) for a, b in _both(results, slow, fast))
        here = f"at most {apart} bytes apart, {len(SEEDS)} seeds"
        page.verdict(statement, here, judge(apart == 0, _unexplained(f"{apart} bytes apart")))
    used = [a.used - b.used for a, b in _both(results, FIRST_SLOW, FIRST_FAST)]
    page.verdict(
        "modem-internal",
        f"{min(used)} to {max(used)} bytes more used with slow free",
        judge(
            min(used) < 0 == max(used),
            fails(
                Cause.CHOICE, "the paper does not tell its smallest blocks; both of ours have 8 bytes, and use the same"
            ),
        ),
    )
    _shares(page, results)
    _difference(page, results)


def _shares(page: Page, results: Results) -> None:
    wasted = {label: results.mean_share(label, "fragments") for label in FOUR}
    low, high = min(wasted.values()), max(wasted.values())
    short = [results.length(30, fit) for fit in _BOTH_FITS]
    brief = " and ".join(percent(mean(one.share("fragments")), 2) for one in short)
    because = fails(
        Cause.CHOICE, f"the paper does not tell how long its run is; with 30 calls ours has {brief} of fragments"
    )
    page.verdict("modem-fragments", f"{percent(low, 2)} to {percent(high, 2)}", judge(high < 0.005, because))
    both = f"{percent(wasted[FIRST_FAST], 2)} and {percent(wasted[BEST_FAST], 2)}"
    page.verdict("modem-agreement", both, judge(high < 0.0098, because))
    filled = {label: results.mean_share(label, "used") for label in FOUR}
    page.verdict(
        "modem-used",
        f"{percent(min(filled.values()), 1)} to {percent(max(filled.values()), 1)}",
        judge(
            min(filled.values()) > 0.978,
            fails(
                Cause.CHOICE,
                "the paper does not tell how long its run is; with 30 calls ours uses "
                + " and ".join(percent(mean(one.share("used")), 1) for one in short),
            ),
        ),
    )
    headers = max(results.mean_share(label, "headers") for label in FOUR)
    theirs = TABLE_1["headers"][0] / TABLE_1["physical size"][0]
    page.verdict(
        "modem-headers",
        percent(headers, 2),
        judge(abs(headers / theirs - 1) <= 0.1, _unexplained(f"{headers / theirs:.2f} times the paper's")),
    )


def _difference(page: Page, results: Results) -> None:
    more = [b.fragments / b.physical - a.fragments / a.physical for a, b in _both(results, FIRST_FAST, BEST_FAST)]
    seeds = f"{len(SEEDS)} seeds: {100 * min(more):+.2f} to {100 * max(more):+.2f} points"
    theirs = (TABLE_1["fragments"][2] - TABLE_1["fragments"][0]) / TABLE_1["physical size"][0]
    within = within_noise(seeds) if min(more) <= theirs <= max(more) else _unexplained(seeds)
    page.verdict(
        "modem-best-worst",
        f"best fit has {100 * mean(more):+.2f} points against first fit; more in {sum(one > 0 for one in more)} of "
        f"{len(SEEDS)} runs",
        judge(min(more) > 0, within),
    )
    means = {label: results.mean_share(label, "fragments") for label in FOUR}
    apart = max(means.values()) - min(means.values())
    runs = [one.fragments / one.physical for label in FOUR for one in results.peaks[label]]
    spread = max(runs) - min(runs)
    page.verdict(
        "modem-no-difference",
        f"their means are at most {100 * apart:.2f} points of memory apart; runs differ by {100 * spread:.2f}",
        judge(apart < spread, _unexplained("they differ by more than their runs do")),
    )


# ---- times ---------------------------------------------------------------------------------------------------------


def _times(page: Page, results: Results) -> None:
    of = results.responses
    dearest = {label: one.dearest_free() or 0 for label, one in of.items()}
    page.verdict(
        "modem-search-previous",
        f"the dearest free takes {dearest[FIRST_SLOW]:,} and {dearest[BEST_SLOW]:,} instructions, with tags "
        f"{dearest[FIRST_FAST]} and {dearest[BEST_FAST]}",
        judge(dearest[FIRST_SLOW] > 2 * dearest[FIRST_FAST], _unexplained("no dearer than with tags")),
    )
    usual = {label: of[label].instructions("free") or 0.0 for label in FOUR}
    page.verdict(
        "modem-constant",
        f"{usual[FIRST_FAST]:.0f} instructions on average, {dearest[FIRST_FAST]} at most",
        judge(dearest[FIRST_FAST] < 1.2 * usual[FIRST_FAST], _unexplained("the dearest takes much longer")),
    )
    total = {label: of[label].total() or 0.0 for label in FOUR}
    order = sorted(total, key=lambda label: total[label])
    told = "; ".join(f"{label} {total[label]:,.0f}" for label in order) + " instructions"
    page.verdict(
        "modem-first-faster",
        f"{total[FIRST_SLOW]:,.0f} and {total[FIRST_FAST]:,.0f} against {total[BEST_SLOW]:,.0f} and "
        f"{total[BEST_FAST]:,.0f} instructions",
        judge(total[FIRST_SLOW] < total[BEST_SLOW] and total[FIRST_FAST] < total[BEST_FAST], _unexplained(told)),
    )
    for statement, at, label in (("slowest", 3, BEST_SLOW), ("fastest", 0, FIRST_FAST), ("second", 1, BEST_FAST)):
        page.verdict(f"modem-{statement}", told, judge(order[at] == label, _unexplained(f"it is {order[at]}")))
    ratios = [usual[slow] / usual[fast] for slow, fast in _PAIRS]
    page.verdict(
        "modem-free-faster",
        f"{ratios[0]:.1f} and {ratios[1]:.1f} times, the paper {1.28 / 0.24:.1f} and {1.42 / 0.36:.1f}",
        judge(min(ratios) > 2, _unexplained("less than twice as fast")),
    )
    page.verdict(
        "modem-suitable",
        f"the fastest, {total[FIRST_FAST]:,.0f} instructions against {total[order[1]]:,.0f} of the next",
        judge(order[0] == FIRST_FAST, _unexplained(told)),
    )


def _swaps(page: Page, results: Results) -> None:
    swaps, of = results.swaps, results.responses
    inside = {label: swaps.allocator(of[label], connected=False) or 0.0 for label in FOUR}
    gains = [inside[fast] - inside[slow] for slow, fast in _PAIRS]
    free, swap = TABLE_2["free"], TABLE_2["swap"]
    frees = (swap[2] - swap[0]) / (free[2] - free[0])
    page.verdict(
        "modem-swap",
        f"fast free takes {gains[0]:+,.0f} and {gains[1]:+,.0f} instructions of {inside[FIRST_SLOW]:,.0f} and "
        f"{inside[BEST_SLOW]:,.0f}; the copy takes the same with all",
        judge(
            min(gains) > 0,
            fails(
                Cause.CONTRADICTION,
                f"best fit's {swap[2] - swap[0]:.2f} µs more take {frees:.0f} frees at its own times, as its mallocs "
                f"are faster; with so many, fast free would be {frees * (free[0] - free[1]):.0f} µs faster, not "
                f"{swap[1] - swap[0]:.2f} µs slower",
            ),
        ),
    )


# ---- arithmetic, code, growth --------------------------------------------------------------------------------------


def _code(page: Page, results: Results) -> None:
    sums = [a + b for a, b in zip(TABLE_2["malloc"], TABLE_2["free"], strict=True)]
    right = all(abs(a - b) < 0.006 for a, b in zip(sums, TABLE_2["total"], strict=True))
    page.verdict(
        "modem-sum", ", ".join(f"{one:.2f}" for one in sums) + " µs", judge(right, _unexplained("they do not add up"))
    )
    if any(code is None for code in results.codes.values()):
        for statement in ("modem-module", "modem-more-code"):
            page.verdict(statement, "–", _NO_TOOLS)
        return
    size = {
        level: {label: results.codes[label][level].text + results.codes[label][level].data for label in FOUR}
        for level in ("O0", "Os")
    }
    largest = {level: max(of.values()) for level, of in size.items()}
    page.verdict(
        "modem-module",
        f"{largest['O0']:,} bytes at -O0, {largest['Os']:,} at -Os",
        judge(largest["O0"] < 3300, _unexplained("larger")),
    )
    more = {level: [of[fast] - of[slow] for slow, fast in _PAIRS] for level, of in size.items()}
    whole = TABLE_3["text"][0] + TABLE_3["data"][0]
    page.verdict(
        "modem-more-code",
        f"{more['O0'][0]:+d} and {more['O0'][1]:+d} bytes at -O0, {more['Os'][0]:+d} and {more['Os'][1]:+d} at -Os",
        judge(
            all(abs(one / 472 - 1) <= 0.1 for one in more["O0"]),
            fails(
                Cause.CHOICE,
                f"the paper tells neither processor nor options; without any the whole of ours has "
                f"{size['O0'][FIRST_SLOW]:,} bytes, the paper's {whole:,}",
            ),
        ),
    )


def _growth(page: Page, results: Results) -> None:
    first, last = results.scaled[0].instances, results.scaled[-1].instances
    of = {(one.heap, one.instances): one.accesses for one in results.scaled}
    ratio = [of[FIRST_SLOW, count] / of[FIRST_FAST, count] for count in (first, last)]
    page.verdict(
        "modem-workload",
        f"slow free takes {ratio[0]:.2f} times the accesses of fast free with {first} instance, {ratio[1]:.2f} times "
        f"with {last} (first fit)",
        judge(abs(ratio[1] / ratio[0] - 1) > 0.05, _unexplained("the same ratio for all")),
    )
    told = (
        f"accesses a call with {last} instances: first fit {of[FIRST_TREE, last]:.1f} for {of[FIRST_FAST, last]:.1f}, "
        f"best fit {of[BEST_TREE, last]:.1f} for {of[BEST_FAST, last]:.1f} with fast free"
    )
    five = [(results.responses[tree].total(), results.responses[fast].total()) for tree, fast in _TREES]
    if all(tree is not None for tree, _ in five):
        told += "; instructions of a malloc and a free with five: " + ", ".join(
            f"{tree:,.0f} for {fast:,.0f}" for tree, fast in five
        )
    page.verdict(
        "modem-trees",
        told,
        judge(all(of[tree, last] < of[fast, last] for tree, fast in _TREES), _unexplained("no fewer accesses")),
    )
