"""Pictures of what is measured on the recordings: live bytes, arenas, growth, copies, rules, faults."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import heapwright as hw
from pictures.drawing import LINE, Picture, width_of
from pictures.plot import Plot, Span, kilobytes, octaves, short, steps
from pictures.recordings import PACKETS, ROOT, broker, ring_of_packets, server, tutorials_pick

POINTS = 240


def _sampled(values: np.ndarray) -> list[tuple[int, int]]:
    """A curve over the calls in few points that keep its peaks: (number of the call, value)."""
    return [(int(at) + 1, int(values[at])) for at in hw.sample_events(values, POINTS)]


def _live(trace: hw.Trace, title: str, told: str) -> Picture:
    live = trace.live_bytes
    peak = int(live.argmax())
    picture = Picture(told, 320)
    picture.text(16, 28, title, bold=True)
    plot = Plot(picture, Span(0, len(trace), 76, 524), Span(0, int(live[peak]) * 1.12, 268, 52))
    plot.grid_y(steps(0, plot.y.high))
    plot.grid_x(steps(0, len(trace)), short)
    points = _sampled(live)
    plot.ground(points, "sky")
    plot.stairs(points, "blue", 1.2)
    plot.dot(peak, live[peak], 4.5, "red")
    beyond = plot.x.at(peak) > 300
    words = f"peak: {live[peak]:,} bytes, after call {peak + 1:,}"
    picture.text(plot.x.at(peak) + (-10 if beyond else 10), 50, words, "red", anchor="end" if beyond else "start")
    picture.text(524, 308, "calls", "soft", anchor="end")
    return picture


def live_bytes() -> Picture:
    """What the broker has requested and not freed yet."""
    trace = broker()
    text = "Live bytes of an MQTT broker, and their peak"
    return _live(trace, "What an MQTT broker has live, in bytes requested", text)


def server_live() -> Picture:
    """Live bytes of the web server."""
    text = "Live bytes of a web server: a slow rise and short peaks"
    return _live(server(), "What a web server has live", text)


def packets_live() -> Picture:
    """Live bytes of a ring of packets."""
    return _live(ring_of_packets(), "What a ring of 64 packets has live", "Live bytes of a ring of 64 packets")


# ---- arenas --------------------------------------------------------------------------------------------------------


def _bar(picture: Picture, y: float, words: str, value: float, told: str, bytes_: Span, colour: str) -> None:
    """A name, and below it a bar with its value behind it."""
    picture.text(16, y + 14, words)
    right = bytes_.at(value)
    picture.box(16, y + 20, right - 16, 20, colour)
    picture.text(right + 8, y + 35, told, "soft")


def reserve() -> Picture:
    """Live bytes, arena sizes and the reserve for TLSF on the broker."""
    trace = broker()
    result = hw.fit(trace, "tlsf")
    grown = hw.fit(trace, "tlsf", growth=2)
    assert result.safe_arena_bytes and result.reserve_bytes and grown.reserve_bytes and result.smallest_arena_bytes
    margin = result.reserve_bytes / result.safe_arena_bytes - 1
    rows = (
        ("peak of live bytes, as requested", trace.peak_live_bytes, "blue"),
        ("smallest arena: the recording completes", result.smallest_arena_bytes, "sky"),
        ("monotone minimum: every larger arena suffices, as tested", result.safe_arena_bytes, "sky"),
        (f"reserve: {margin:.0%} more, for another day of the same load", result.reserve_bytes, "green"),
        ("reserve for twice the load", grown.reserve_bytes, "pale"),
    )
    picture = Picture("Live bytes, smallest arena, monotone minimum and reserve of tlsf", 312)
    picture.text(16, 28, "TLSF on the MQTT broker", bold=True)
    bytes_ = Span(0, grown.reserve_bytes, 16, 524 - width_of(f"{grown.reserve_bytes:,} bytes") - 8)
    for at, (words, value, colour) in enumerate(rows):
        _bar(picture, 42 + at * 52, words, value, f"{value:,} bytes", bytes_, colour)
    return picture


def gate() -> Picture:
    """Rules of a check on the page's traces: how much of each limit is used."""
    trace = broker()
    before = hw.check(hw.cut(trace, first=6000), "tlsf@8")[0].values
    assert before["reserve_bytes"] is not None
    rules = ["accesses_malloc_max > 64", f"reserve_bytes > {before['reserve_bytes'] * 1.02:.0f}"]
    (result,) = hw.check(trace, "tlsf@8", rules, budget=160 * 1024)
    picture = Picture("Three rules: two pass, one fails", 236)
    picture.text(16, 28, "tlsf@8 on the MQTT broker", bold=True)
    names = [
        "worst-case malloc, accesses",
        "reserve, limit: baseline + 2 %",
        "reserve, limit: budget of 160 KB",
    ]
    for at, (verdict, words) in enumerate(zip(result.verdicts, names, strict=True)):
        value, limit = verdict.value, verdict.limit
        assert value is not None and limit is not None
        span = Span(0, limit * 1.1, 16, 524)
        y = 44 + at * 60
        colour = "red" if verdict.broken else "blue"
        picture.text(16, y + 14, words)
        picture.text(524, y + 14, f"{value:,} of {limit:,.0f}", colour, anchor="end")
        picture.box(16, y + 22, 508, 20, "grid")
        picture.box(16, y + 22, span.at(value) - 16, 20, colour)
        picture.line([(span.at(limit), y + 18), (span.at(limit), y + 46)], "ink", 2)
    picture.text(16, 228, "Vertical lines are limits; a value beyond one gives exit status 3.", "soft")
    return picture


def live() -> Picture:
    """What `heapwright live` would have shown of two heaps, call by call."""
    trace = broker()
    picture = Picture("Live bytes along the calls, and what two heaps used", 330)
    picture.text(16, 28, "The MQTT broker, followed", bold=True)
    heaps = {"all-round": "green", "tlsf": "red"}
    calls = [len(trace) * part // 40 for part in range(1, 41)]
    parts = [hw.cut(trace, first=at, close=False) for at in calls]
    used = {
        name: [(len(item), hw.replay(item, name).metrics["footprint_bytes"] or 0) for item in parts] for name in heaps
    }
    most = max(value for points in used.values() for _, value in points)
    plot = Plot(picture, Span(0, len(trace), 76, 524), Span(0, most * 1.4, 268, 48))
    plot.grid_y(steps(0, plot.y.high))
    plot.grid_x(steps(0, len(trace)), short)
    points = _sampled(trace.live_bytes)
    plot.ground(points, "sky")
    for at, (name, colour) in enumerate(heaps.items()):
        plot.stairs(used[name], colour)
        picture.text(100, 64 + at * LINE, f"used by {name}: {used[name][-1][1]:,} bytes", colour)
    picture.text(430, 256, "live bytes", "ink", anchor="end")
    picture.text(524, 312, "calls", "soft", anchor="end")
    return picture


# ---- packets -------------------------------------------------------------------------------------------------------


def packet_sizes() -> Picture:
    """Sizes of the packets of a network, in bins."""
    result = hw.profile(PACKETS)
    bins, modes = result["histogram"], result["modes"]
    picture = Picture("Packets by size: nearly all are short or full", 300)
    picture.text(16, 28, f"{result['packets']:,} packets by size", bold=True)
    most = max(bin["count"] for bin in bins)
    plot = Plot(picture, Span(0, bins[-1]["to"], 60, 524), Span(0, most * 1.2, 240, 44))
    plot.grid_y(steps(0, plot.y.high), short)
    plot.grid_x(steps(0, plot.x.high), lambda value: f"{value:,.0f}")
    for bin in bins:
        left, right = plot.x.at(bin["from"]) + 1, plot.x.at(bin["to"]) - 1
        picture.box(left, plot.y.at(bin["count"]), right - left, plot.y.start - plot.y.at(bin["count"]), "blue")
    for mode in modes:
        height = next(bin["count"] for bin in bins if bin["from"] <= mode["size"] < bin["to"])
        words = f"{mode['size']:,} bytes: {mode['share']:.0%}"
        if mode["size"] < plot.x.high / 2:
            picture.text(plot.x.at(mode["size"] - 20), plot.y.at(height) - 8, words)
        else:
            picture.text(520, plot.y.at(height) - 8, words, anchor="end")
    picture.text(524, 284, "bytes", "soft", anchor="end")
    return picture


def load() -> Picture:
    """The most bytes of packets that are held, by the load of the link, with and without a ring."""
    loads = [0.6, 0.7, 0.8, 0.9, 1.0, 1.05, 1.1]
    text = "Bytes of packets held by load: beyond 1 only a ring bounds them"
    picture = Picture(text, 320)
    picture.text(16, 28, "Most bytes of packets held, by the load of the link", bold=True)
    rings = {"no bound": ("red", {}), "a ring of 64": ("blue", {"ring": 64})}
    curves = {
        words: [trace.peak_live_bytes for trace in hw.workload("easyport", PACKETS, load=loads, **options)]
        for words, (_, options) in rings.items()
    }
    high = max(max(peaks) for peaks in curves.values())
    plot = Plot(picture, Span(loads[0], loads[-1], 96, 508), Span(2000, high * 1.5, 262, 48, log=True))
    plot.grid_y([10**power for power in range(4, 7)], kilobytes)
    plot.grid_x([0.6, 0.7, 0.8, 0.9, 1.0, 1.1], lambda value: f"{value:g}")
    for words, peaks in curves.items():
        points = list(zip(loads, peaks, strict=True))
        plot.line(points, rings[words][0], 2.5)
        for point in points:
            plot.dot(*point, 4, rings[words][0])
        picture.text(plot.x.at(1.0) - 12, plot.y.at(peaks[-1]) + 5, words, rings[words][0], anchor="end", bold=True)
    picture.text(508, 304, "load", "soft", anchor="end")
    return picture


# ---- whether it holds ----------------------------------------------------------------------------------------------


def growth() -> Picture:
    """A heap that grows and one that is stable, at constant live bytes."""
    names = {"drr-proposed": "red", "tlsf": "blue"}
    leaking, stable = hw.stress(broker(), list(names), calls=1_000_000)
    assert stable.stable and not leaking.stable
    loop = leaking.worst
    text = f"Over a million calls {leaking.heap} grows, {stable.heap} becomes flat"
    picture = Picture(text, 330)
    picture.text(16, 28, f"Footprint at constant live bytes, loop {loop!r}", bold=True)
    curves = {item.heap: list(item.footprint_bytes[loop].items()) for item in (leaking, stable)}
    calls = max(points[-1][0] for points in curves.values())
    most = max(value for points in curves.values() for _, value in points)
    plot = Plot(picture, Span(1000, calls, 86, 524, log=True), Span(0, most * 1.1, 268, 48))
    plot.grid_y(steps(0, plot.y.high))
    plot.grid_x([item for item in octaves(1000, calls) if f"{item:.0f}"[0] == "1"], short)
    for item in (leaking, stable):
        points = curves[item.heap]
        points = [*points, (calls, points[-1][1])]
        plot.stairs(points, names[item.heap], 2.5)
        words = f"{item.heap}: {'stable' if item.stable else 'grows'}"
        where = (100, plot.y.at(points[-1][1]) - 10) if item.stable else (496, plot.y.at(points[-1][1]) + 5)
        picture.text(*where, words, names[item.heap], "start" if item.stable else "end", bold=True)
    picture.text(524, 312, "calls", "soft", anchor="end")
    return picture


def copies() -> Picture:
    """Footprints of some heaps on the broker and on perturbed traces, relative to the minimum."""
    heaps = {"the tutorial's recipe": tutorials_pick()} | {
        name: hw.zoo(name).at_alignment(8) for name in ("tlsf", "newlib-nano", "all-round", "binary-buddy", "kingsley")
    }
    traces = [broker(), *hw.copies(broker(), 6)]
    footprints = np.array(
        [[hw.replay(trace, heap).metrics["footprint_bytes"] for trace in traces] for heap in heaps.values()], float
    )
    ratios = footprints / footprints.min(axis=0)
    picture = Picture("Memory of six heaps on a recording and perturbed traces", 318)
    picture.text(16, 28, "Memory, relative to the minimum of these heaps", bold=True)
    plot = Plot(picture, Span(1, float(ratios.max()) * 1.03, 160, 516), Span(0, len(heaps), 262, 46))
    plot.grid_x(steps(1, plot.x.high, 5), lambda value: f"{value:g} x")
    for at, (name, row) in enumerate(zip(heaps, ratios.tolist(), strict=True)):
        y = 64 + at * 36
        picture.text(150, y + 5, name, anchor="end")
        picture.line([(plot.x.at(min(row)), y), (plot.x.at(max(row)), y)], "pale", 2)
        for value in row[1:]:
            picture.dot(plot.x.at(value), y, 4.5, "sky", "blue")
        picture.dot(plot.x.at(row[0]), y, 5.5, "red", "paper")
    picture.dot(22, 305, 5.5, "red")
    picture.text(34, 310, "the recording", "soft")
    picture.dot(160, 305, 4.5, "sky", "blue")
    picture.text(172, 310, "a perturbed trace", "soft")
    return picture


OUTCOMES = {"at_once": "blue", "later": "sky", "harmless": "grid", "silent": "sand", "crashed": "ink"}


def levels() -> Picture:
    """What each level of checks notices of each fault, on TLSF: the counts that the tests hold it to."""
    rows = _counts("tlsf")
    results = list(dict.fromkeys(level for level, _ in rows))
    faults = list(dict.fromkeys(fault for _, fault in rows))
    text = f"What {', '.join(results[:-1])} and {results[-1]} notice of eleven faults"
    picture = Picture(text, 96 + 24 * len(faults) + 34)
    picture.text(16, 28, f"tlsf, {sum(next(iter(rows.values())))} runs of each fault", bold=True)
    for at, level in enumerate(results):
        picture.text(148 + at * 128, 56, level)
    for down, fault in enumerate(faults):
        y = 68 + down * 24
        picture.text(16, y + 14, fault.replace("_", " "))
        for at, level in enumerate(results):
            x, counts = 148.0 + at * 128, rows[level, fault]
            for outcome, count in zip(OUTCOMES, counts, strict=True):
                if count:
                    picture.box(x, y, 118 * count / sum(counts), 18, OUTCOMES[outcome])
                    x += 118 * count / sum(counts)
    x = 16.0
    for outcome, colour in OUTCOMES.items():
        words = {"at_once": "noticed at once"}.get(outcome, outcome)
        picture.box(x, picture.height - 28, 14, 14, colour, "pale")
        picture.text(x + 20, picture.height - 16, words, "soft")
        x += width_of(words) + 40
    return picture


def _counts(heap: str) -> dict[tuple[str, str], Sequence[int]]:
    """(level, fault) -> how many runs came to each outcome."""
    lines = (ROOT / "tests/assure/attack_matrix.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].split()[3:] == list(OUTCOMES)
    rows = [line.split() for line in lines[1:]]
    return {(row[1], row[2]): [int(count) for count in row[3:]] for row in rows if row[0] == heap}
