"""The figures about pools for the packets of a network: sizes, fragmentation, energy, instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from heapwright_papers import wifi_runs as wifi
from heapwright_papers.answers import percent
from heapwright_papers.traffic import marked

if TYPE_CHECKING:
    from heapwright import figure
    from heapwright_papers.wifi_runs import Foretold, Network, Results

WIDTH = 540
"""Pixels: at the width of a phone the words are still three quarters of their size."""
ROW = 22
THEIRS = "the paper, average"
MARKED = " † Captures laid end to end."


def sizes(networks: Sequence[Network]) -> figure.Figure:
    """Figure 1: where the packets of each network are."""
    import altair as alt

    from heapwright import figure

    modes = {wifi.ACK: wifi.ACK_SHARE, wifi.MTU: wifi.MTU_SHARE}
    rows = [{"network": THEIRS, "size": size, "share": share, "whose": "paper"} for size, share in modes.items()]
    for network in networks:
        shares = [(size, share) for size, share in network.shares.items() if share >= 0.01]
        rows += [
            {"network": marked(network.name), "size": size, "share": share, "whose": "ours"} for size, share in shares
        ]
    chart = (
        figure.inline(rows)
        .mark_circle(opacity=0.75)
        .encode(
            x=alt.X(
                "size:Q",
                title="size, B (logarithmic)",
                scale=alt.Scale(type="log", domain=[8, 4096], nice=False),
                axis=alt.Axis(values=[10, 40, 100, 500, 1500], format="d"),
            ),
            y=_networks([marked(network.name) for network in networks]),
            size=alt.Size(
                "share:Q",
                scale=alt.Scale(domain=[0, 1], range=[0, 520]),
                legend=alt.Legend(
                    title="share of the packets", values=[0.05, 0.2, 0.6], format="%", symbolType="circle"
                ),
            ),
            color=alt.Color(
                "whose:N",
                scale=alt.Scale(domain=["paper", "ours"], range=[figure.VERMILLION, figure.BLUE]),
                legend=None,
            ),
        )
    )
    classic = sum(set(_two(network)) == set(modes) for network in networks)
    title = f"{wifi.ACK} and {wifi.MTU} bytes are the two most frequent sizes on {classic} of {len(networks)} networks"
    note = f"Each circle is a size with at least 1 % of the packets; vermillion: the paper's average of 18.{MARKED}"
    return figure.Figure("wifi-sizes", title, note, chart.properties(height=ROW * (len(networks) + 1)), WIDTH)


def _two(network: Network) -> list[int]:
    return [int(mode["size"]) for mode in network.profile["modes"]]


def fragmentation(results: Results) -> figure.Figure:
    """Figure 3, footprint: what is wasted beyond the packets."""
    shown = (wifi.POOLS, wifi.PUBLISHED, wifi.PAGES, wifi.LEA)
    values = {
        heap: {name: one.fragmentation for name, one in results.real[heap].items()}
        for heap in shown
        if heap in results.real
    }
    ours, linux = (
        results.total(heap, "allocated") / results.total(heap, "requested") - 1 for heap in (wifi.POOLS, wifi.PAGES)
    )
    title = f"Pools made for a network waste {percent(ours)} in all, pages of 4096 {percent(linux)}"
    note = f"Fragmentation: bytes of blocks / bytes of packets - 1, of a full queue of 1,000 packets.{MARKED}"
    theirs = {wifi.POOLS: 0.0805, wifi.PAGES: 1.8874}
    return _dots("wifi-fragmentation", title, note, values, theirs, "fragmentation, headers left out", "%")


def energy(results: Results) -> figure.Figure:
    """Figure 3, energy."""
    values = _values(results, "energy")
    ratio = median(values[wifi.POOLS][name] / values[wifi.LEA][name] for name in values[wifi.LEA])
    title = f"The walk takes {ratio:.0f} times the energy of Lea's lists on the median network"
    note = f"All accesses of filling and emptying a queue of 1,000 packets, in a 90 nm SRAM.{MARKED}"
    theirs = {wifi.POOLS: 16_072.0, wifi.LEA: 162_488.0}
    return _dots("wifi-energy", title, note, values, theirs, "energy, nJ (logarithmic)", "")


def instructions(results: Results) -> figure.Figure:
    """Figure 3, execution time."""
    values = _values(results, "instructions")
    share = median(values[wifi.LISTED][name] / values[wifi.LEA][name] for name in values[wifi.LEA])
    title = f"With free lists pools take {percent(1 - share)} fewer instructions than Lea's on the median network"
    note = (
        "All calls of filling and emptying a queue of 1,000 packets on a Cortex-M3. The paper: pools below 100 ms, "
        f"Linux above 200.{MARKED}"
    )
    return _dots("wifi-instructions", title, note, values, {}, "instructions (logarithmic)", "")


def foretold(found: Sequence[Foretold], sample: int) -> figure.Figure:
    """Pools chosen early, in hindsight, and the paper's own."""
    first, rest, published = f"first {sample:,} packets", "hindsight", "the paper's seven"
    values = {
        first: {one.name: one.first for one in found},
        rest: {one.name: one.rest for one in found},
        published: {one.name: one.published for one in found if one.published is not None},
    }
    near = sum(one.first <= one.rest + 0.05 for one in found)
    title = f"{sample:,} packets choose pools within 5 points of hindsight on {near} of {len(found)}"
    note = f"Fragmentation of queues filled with all later packets of each network, an average.{MARKED}"
    return _dots("wifi-first", title, note, values, {}, "fragmentation, headers left out", "%")


def _values(results: Results, key: str) -> dict[str, dict[str, float]]:
    heaps = (wifi.POOLS, wifi.LISTED, wifi.LEA)
    return {heap: {name: float(getattr(one, key)) for name, one in results.real[heap].items()} for heap in heaps}


def _networks(names: Sequence[str], theirs: bool = True) -> Any:
    import altair as alt

    return alt.Y(
        "network:N",
        title=None,
        sort=None,
        scale=alt.Scale(domain=[*([THEIRS] if theirs else []), *names]),
        axis=alt.Axis(grid=True, labelLimit=190, labelFontSize=12),
    )


def _dots(
    name: str,
    title: str,
    note: str,
    values: Mapping[str, Mapping[str, float]],
    theirs: Mapping[str, float],
    axis: str,
    style: str,
) -> figure.Figure:
    """A mark for each heap on each network's line, and the paper's in vermillion; logarithmic without a `style`."""
    import altair as alt

    from heapwright import figure

    networks = list(dict.fromkeys(one for of in values.values() for one in of))
    rows = [
        {"network": marked(network), "heap": heap, "value": value}
        for heap, of in values.items()
        for network, value in of.items()
    ]
    if style:
        scale, labels = alt.Scale(), alt.Axis(format=style, tickCount=6)
    else:
        every = [*(value for of in values.values() for value in of.values()), *theirs.values()]
        domain = [0.8 * min(every), 1.2 * max(every)]
        scale = alt.Scale(type="log", domain=domain, nice=False)
        labels = alt.Axis(values=_ticks(*domain), labelExpr=figure.SI)
    x = alt.X("value:Q", title=axis, scale=scale, axis=labels)
    shapes = alt.Scale(domain=list(values), range=["circle", "square", "triangle-up", "diamond"])
    y = _networks([marked(network) for network in networks], bool(theirs))
    shape = alt.Shape("heap:N", sort=None, scale=shapes, legend=alt.Legend(columns=2, labelLimit=240))
    colours = alt.Scale(domain=list(values), range=[figure.BLUE, figure.INK, figure.CLOUD, figure.SOFT])
    ours = (
        figure.inline(rows)
        .mark_point(filled=False, size=70, strokeWidth=2, opacity=1)
        .encode(x=x, y=y, shape=shape, color=alt.Color("heap:N", sort=None, scale=colours))
    )
    layers = [ours]
    if theirs:
        points = [{"network": THEIRS, "heap": heap, "value": value} for heap, value in theirs.items()]
        layers.append(
            figure.inline(points)
            .mark_point(filled=False, size=90, strokeWidth=2.5, opacity=1, color=figure.VERMILLION)
            .encode(x=x, y=y, shape=shape)
        )
        note += " Vermillion: the paper."
    height = ROW * (len(networks) + bool(theirs))
    return figure.Figure(name, title, note, alt.layer(*layers).properties(height=height), WIDTH)


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten within the range, and three times these where there are few."""
    powers = [10.0**exponent for exponent in range(8)]
    within = [power for power in powers if low <= power <= high]
    return (
        within if len(within) > 3 else [tick for power in powers for tick in (power, 3 * power) if low <= tick <= high]
    )
