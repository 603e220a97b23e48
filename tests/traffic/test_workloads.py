"""Workloads against references written a second time, theory, and the restrictions of their papers."""

from __future__ import annotations

from collections import OrderedDict, deque

import numpy as np
import pytest
from case_tables import each
from hypothesis import given
from hypothesis import strategies as st
from metric_values import known
from networks import random_packets, table

import heapwright as hw
from heapwright._recipes.recipe import Recipe
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC
from heapwright._traffic.packets import PacketTable
from heapwright._traffic.payload import payload
from heapwright._traffic.workloads import link
from heapwright._traffic.workloads.drr import drr
from heapwright._traffic.workloads.easyport import easyport
from heapwright._traffic.workloads.modem import FAST, MODULATIONS, UNITS, agreed, allowed, modem
from heapwright._traffic.workloads.poisson import poisson
from heapwright._traffic.workloads.queue import queue
from heapwright._traffic.workloads.url import url
from heapwright_papers.pools import erlang_b

MILLION_BITS = 8e6
"""A rate at which a byte takes a microsecond."""


@st.composite
def packet_tables(draw: st.DrawFn) -> PacketTable:
    rows = draw(
        st.lists(st.tuples(st.integers(0, 300), st.integers(15, 400), st.integers(0, 4)), min_size=1, max_size=40)
    )
    times = np.cumsum([row[0] for row in rows])
    return table((times - times[0]).tolist(), [row[1] for row in rows], [row[2] for row in rows])


def calls(trace: Trace) -> list[tuple[int, int, int, int]]:
    """(time, op, size, order of birth) of every call; a free has the size of what it frees."""
    number, _ = trace.objects()
    size = dict(zip(number[trace.op == MALLOC].tolist(), trace.size[trace.op == MALLOC].tolist(), strict=True))
    rows = zip(trace.ts_us.tolist(), trace.op.tolist(), number.tolist(), strict=True)
    return [(time, op, size[object_], object_) for time, op, object_ in rows]


def test_no_load_is_computed_over_the_gaps_between_captures_laid_end_to_end() -> None:
    busy = random_packets(400)
    times = np.concatenate([busy.ts_us[:200], busy.ts_us[200:] + 60_000_000])
    laid = table(times.tolist(), busy.frame_len.tolist(), busy.flow.tolist())
    expected = link.bits_a_second(busy, 0.9, None)
    assert link.bits_a_second(laid, 0.9, None) < expected / 100
    closed = laid.closing_gaps(0.5)
    assert np.diff(closed.ts_us)[199] == 500_000
    assert link.bits_a_second(closed, 0.9, None) == pytest.approx(expected, rel=0.01)
    trace = hw.workload("drr", laid, longest_gap=0.5)
    assert trace.metadata["longest_gap"] == "0.5" and hw.workload("drr", laid).peak_live_bytes > trace.peak_live_bytes
    with pytest.raises(HeapwrightError, match="longest_gap: 0: must be more than 0 seconds"):
        hw.workload("drr", laid, longest_gap=0)
    with pytest.raises(HeapwrightError, match="modem: no option longest_gap"):
        hw.workload("modem", longest_gap=1)


# --- deficit round robin ---------------------------------------------------------------------------------------------


class Reference:
    """Deficit round robin with dictionaries and lists, a byte a microsecond, written after the paper's words."""

    def __init__(self, quantum: int, restart: bool, node: int, extra: int) -> None:
        self.quantum, self.restart, self.node, self.extra = quantum, restart, node, extra
        self.queues: OrderedDict[int, deque[tuple[int, int]]] = OrderedDict()
        self.deficit: dict[int, int] = {}
        self.nodes: dict[int, int] = {}
        self.served: int | None = None
        self.visited = False
        self.found: list[tuple[int, int, int, int]] = []
        self.born = 0

    def allocate(self, time: int, size: int) -> int:
        self.found.append((time, MALLOC, size, self.born))
        self.born += 1
        return self.born - 1

    def run(self, packets: PacketTable) -> list[tuple[int, int, int, int]]:
        waiting = deque(zip(packets.ts_us.tolist(), packets.frame_len.tolist(), packets.flow.tolist(), strict=True))
        now, until = 0, None
        while waiting or until is not None:
            if until is not None and (not waiting or until <= waiting[0][0]):
                now = until
                self.finish(now)
            else:
                now, length, flow = waiting.popleft()
                self.arrive(now, length, flow)
                if until is not None:
                    continue
            until = now + self.pick() if self.queues else None
        return self.found

    def arrive(self, now: int, length: int, flow: int) -> None:
        if flow not in self.queues:
            self.nodes[flow] = self.allocate(now, self.node)
            self.queues[flow], self.deficit[flow] = deque(), 0
        self.queues[flow].append((length, self.allocate(now, max(length - 14 - 40, 0) + self.extra)))

    def pick(self) -> int:
        order = list(self.queues)
        at = 0 if self.restart or self.served is None else order.index(self.served)
        add = self.restart or self.served is None or not self.visited
        while True:
            flow = order[at % len(order)]
            self.deficit[flow] += self.quantum if add else 0
            if self.queues[flow][0][0] <= self.deficit[flow]:
                self.deficit[flow] -= self.queues[flow][0][0]
                self.served, self.visited = flow, True
                return max(self.queues[flow][0][0], 0)
            at, add = at + 1, True

    def finish(self, now: int) -> None:
        flow = self.served
        assert flow is not None
        length, block = self.queues[flow].popleft()
        self.found.append((now, FREE, max(length - 14 - 40, 0) + self.extra, block))
        if not self.queues[flow]:
            order = list(self.queues)
            behind = order[order.index(flow) + 1 :]
            self.found.append((now, FREE, self.node, self.nodes[flow]))
            del self.queues[flow]
            self.served, self.visited = (behind[0] if behind else None), False


@pytest.mark.parametrize("rotation", ["restart", "classic"])
@given(packets=packet_tables(), quantum=st.sampled_from([64, 100, 400, 9216]))
def test_drr_does_what_its_reference_does(rotation: str, packets: PacketTable, quantum: int) -> None:
    trace = drr(packets, size="ip", rate=MILLION_BITS, rotation=rotation, quantum=quantum, node=24, extra=16)
    assert calls(trace) == Reference(quantum, rotation == "restart", 24, 16).run(packets)


@pytest.mark.parametrize("rotation", ["restart", "classic"])
def test_drr_long_run_against_its_reference(rotation: str) -> None:
    packets = random_packets(5000)
    trace = drr(packets, size="ip", rate=MILLION_BITS, rotation=rotation, quantum=500)
    assert calls(trace) == Reference(500, rotation == "restart", 24, 16).run(packets)
    assert trace.live_objects[-1] == 0


def test_drr_blocks_are_those_of_the_paper() -> None:
    packets = table([0, 1, 2], [54, 1514, 60], [1, 1, 2])
    assert drr(packets, rate=1e6).size[:3].tolist() == [24, 16, 1476]
    assert drr(packets, rate=1e6, size="frame").size[:3].tolist() == [24, 70, 1530]
    assert drr(packets, size="ip", rate=1e6, headers=100, extra=0, node=8).size[:3].tolist() == [8, 0, 1400]
    no_ip = table([0, 1], [300, 30], [1, 1], with_ip=False)
    assert drr(no_ip, rate=1e6).size[:3].tolist() == [24, 316, 46]


def test_an_acknowledgement_with_time_stamps_carries_no_data() -> None:
    frames = [66, 66, 1514, 54, 66, 54, 54, 80]
    flows = [1, 1, 1, 1, 2, 2, 2, 3]
    packets = table(list(range(len(frames))), frames, flows)
    packets.proto[-1] = 17
    assert payload(packets).tolist() == [0, 0, 1448, 0, 12, 0, 0, 38]
    taken = drr(packets, rate=1e6, node=0)
    assert sorted(taken.size[taken.size > 0].tolist()) == [16, 16, 16, 16, 16, 28, 54, 1464]
    of_ip = drr(packets, size="ip", rate=1e6, node=0)
    assert sorted(of_ip.size.tolist())[-5:] == [28, 28, 28, 42, 1476]


def test_drr_hashes_flows_into_queues() -> None:
    packets = random_packets(2000, flows=300)
    assert (drr(packets, load=3, queues=1).size == 24).sum() == 1
    assert drr(packets, load=3, queues=7).peak_live_objects <= 2000 + 7


def test_load_shapes_the_queues() -> None:
    packets = random_packets(20_000)
    peaks = [drr(packets, load=load).peak_live_bytes for load in (0.1, 0.5, 0.9, 2)]
    assert peaks == sorted(peaks) and peaks[-1] > 20 * peaks[0]


# --- easyport, url ---------------------------------------------------------------------------------------------------


def test_easyport_is_first_in_first_out() -> None:
    packets = random_packets(3000, seed=4)
    trace = easyport(packets, rate=MILLION_BITS)
    arrived, length = packets.ts_us, packets.frame_len.astype(np.int64)
    sent = np.empty(len(packets), np.int64)
    free_at = 0
    for number in range(len(packets)):
        free_at = sent[number] = max(free_at, arrived[number]) + length[number]
    frees = trace.op == FREE
    assert trace.ts_us[frees].tolist() == sent.tolist()
    assert trace.id[frees].tolist() == list(range(len(packets)))
    assert trace.size[~frees].tolist() == length.tolist()
    assert easyport(packets, rate=MILLION_BITS, size="ip", extra=8).size[0] == length[0] - 14 + 8


def test_at_equal_times_what_is_sent_goes_first() -> None:
    trace = easyport(table([0, 100], [100, 100], [1, 1]), rate=MILLION_BITS)
    assert trace.op.tolist() == [MALLOC, FREE, MALLOC, FREE]


def test_a_ring_drops_what_comes_while_it_is_full() -> None:
    """A byte a microsecond: the first is sent at 100, the second at 200, and the third finds both still there."""
    packets = table([0, 10, 20, 150], [100, 100, 100, 100], [1, 2, 3, 1])
    trace = easyport(packets, rate=MILLION_BITS, ring=2)
    assert calls(trace) == [
        (0, MALLOC, 100, 0),
        (10, MALLOC, 100, 1),
        (100, FREE, 100, 0),
        (150, MALLOC, 100, 2),
        (200, FREE, 100, 1),
        (300, FREE, 100, 2),
    ]
    assert (trace.metadata["ring"], trace.metadata["dropped"]) == ("2", "1")
    assert "ring" not in easyport(packets, rate=MILLION_BITS).metadata


@pytest.mark.parametrize("name", ["drr", "easyport", "url"])
def test_a_ring_bounds_what_is_held_and_tells_the_drops(name: str) -> None:
    packets = random_packets(2000, seed=3)
    free = hw.workload(name, packets, load=2)
    bound = hw.workload(name, packets, load=2, ring=10)
    assert bound.peak_live_bytes < free.peak_live_bytes / 10
    assert 0 < int(bound.metadata["dropped"]) < 2000
    wide = hw.workload(name, packets, load=2, ring=2000)
    assert wide.op.tolist() == free.op.tolist() and wide.metadata["dropped"] == "0"


# --- loads -----------------------------------------------------------------------------------------------------------


def test_several_loads_make_a_trace_each() -> None:
    packets = random_packets(2000, seed=3)
    traces = hw.workload("queue", packets, load=[0.5, 0.9], limit=50)
    assert [(trace.name, trace.metadata["load"]) for trace in traces] == [("queue-0.5", "0.5"), ("queue-0.9", "0.9")]
    assert traces[1].ts_us.tolist() == hw.workload("queue", packets, load=0.9, limit=50).ts_us.tolist()
    assert "load" not in hw.workload("queue", packets, rate=1e6).metadata
    for loads in ([], [0.5, 0.5]):
        with pytest.raises(HeapwrightError, match=r"load: .* give one load or more, each once"):
            hw.workload("queue", packets, load=loads)
    with pytest.raises(HeapwrightError, match="modem: no option load"):
        hw.workload("modem", load=0.5)


def test_the_peak_is_told_for_less_and_more_load() -> None:
    packets = random_packets(3000, seed=5)
    peaks = hw.load_peaks("easyport", packets, load=0.9, extra=4)
    assert list(peaks) == [0.81, 0.9, 0.99]
    assert peaks == {load: easyport(packets, load=load, extra=4).peak_live_bytes for load in peaks}
    assert peaks[0.81] < peaks[0.9] < peaks[0.99]


def test_url_takes_the_blocks_of_the_paper() -> None:
    packets = random_packets(5000, flows=40)
    trace = url(packets, patterns=10)
    taken = trace.size[(trace.op == MALLOC) & (trace.phase == trace.phases.index("forward"))]
    share = {size: (taken == size).mean() for size in (8, 11, 20)}
    assert sum(share.values()) == pytest.approx(1)
    assert share[20] == pytest.approx(2 / 3, abs=0.01) and share[8] == pytest.approx(1 / 3, abs=0.01)
    assert (taken == 11).sum() == 40
    start = trace.phase == trace.phases.index("init")
    assert start.sum() == 30 and start[:30].all()
    assert trace.live_bytes[-1] == 10 * (8 + 11 + 20) == trace.live_bytes[29]


# --- transmit queue --------------------------------------------------------------------------------------------------


def test_the_queue_is_filled_and_emptied() -> None:
    packets = random_packets(2500)
    trace = queue(packets)
    assert trace.op.tolist() == [MALLOC] * 1000 + [FREE] * 1000
    assert trace.id.tolist() == [*range(1000)] * 2
    assert trace.size[:1000].tolist() == packets.ip_len[:1000].tolist()
    assert trace.metadata["used"] == "1000" and trace.metadata["dropped"] == "0"
    every = queue(packets, cycles=None, limit=100)
    assert every.peak_live_objects == 100 and len(every) == 5000
    assert [int(live) for live in every.live_objects[99::100][:4]] == [100, 0, 100, 0]


def test_a_burst_beyond_the_limit_loses_its_tail() -> None:
    packets = random_packets(25)
    trace = queue(packets, limit=4, burst=10, cycles=None)
    assert trace.id[trace.op == MALLOC].tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    assert trace.metadata["dropped"] == "13"
    assert trace.peak_live_objects == 4


@pytest.mark.parametrize("limit", [1, 5, 40])
def test_a_timed_queue_drops_what_finds_it_full(limit: int) -> None:
    packets = random_packets(4000, seed=9)
    trace = queue(packets, limit=limit, rate=MILLION_BITS)
    held: deque[int] = deque()
    kept = []
    free_at = 0
    for number, (now, length) in enumerate(zip(packets.ts_us.tolist(), packets.frame_len.tolist(), strict=True)):
        while held and held[0] <= now:
            held.popleft()
        if len(held) == limit:
            continue
        free_at = max(free_at, now) + length
        held.append(free_at)
        kept.append(number)
    assert trace.id[trace.op == MALLOC].tolist() == kept
    assert int(trace.metadata["dropped"]) == len(packets) - len(kept) > 0
    assert trace.peak_live_objects <= limit


def test_special_pools_on_the_mix_of_the_paper_waste_8_to_10_percent() -> None:
    from heapwright._recipes.zoo.catalogue import load

    draw = np.random.default_rng(7)
    rest = draw.integers(41, 1500, (18, 1000))
    kind = draw.random((18, 1000))
    wasted = []
    for sizes in np.where(kind < 0.43, 40, np.where(kind < 0.69, 1500, rest)):
        packets = table(list(range(1000)), (sizes + 14).tolist(), [1] * 1000)
        wasted.append(known(replay(queue(packets), load("wifi-special-pools"))["fragmentation"]))
    assert 0.08 <= np.mean(wasted) <= 0.10


# --- modem -----------------------------------------------------------------------------------------------------------


def test_what_two_modems_agree_on_is_allowed() -> None:
    random = np.random.default_rng(3)
    results = {agreed(random) for _ in range(20_000)}
    assert all(allowed(units) for units in results)
    assert {unit for units in results for unit in units} == set(UNITS) - {"control", "negotiation"}


@each(
    "units",
    [
        (),
        ("V.110", "HDLC"),
        ("HDLC", "V.34"),
        ("V.34", "V.90"),
        ("V.22bis", "MNP4", "MNP5"),
        ("V.34", "MNP5"),
        ("V.34", "V.42", "MNP5"),
        ("V.34", "V.42bis"),
        ("V.34", "MNP4", "V.42"),
        ("V.21", "V.42"),
        ("V.110", "MNP4"),
    ],
)
def test_what_the_paper_excludes_is_not_allowed(units: tuple[str, ...]) -> None:
    assert not allowed(units)


def test_no_modem_ever_breaks_a_restriction() -> None:
    trace = modem(calls=600, retrain=0.8, seed=5)
    active: dict[tuple[int, str], int] = {}
    checked = 0
    rows = zip(trace.tid.tolist(), trace.site.tolist(), trace.op.tolist(), trace.phase.tolist(), strict=True)
    for instance, site, op, phase in rows:
        unit = trace.sites[site]
        active[instance, unit] = active.get((instance, unit), 0) + (1 if op == MALLOC else -1)
        units = [name for (number, name), blocks in active.items() if number == instance and blocks]
        session = [name for name in units if name not in ("control", "negotiation")]
        between = trace.phases[phase] in ("swap", "hang-up")
        if session and not between and "negotiation" not in units:
            assert allowed(session), session
            checked += 1
        assert "MNP5" not in session or between or any(name in FAST for name in session)
    assert checked > 1000
    assert not any(active.values())


def test_swap_replaces_a_unit_as_a_phase_of_its_own() -> None:
    trace = modem(calls=400, retrain=1.0, seed=1)
    swap = trace.phase == trace.phases.index("swap")
    sites = {trace.sites[site] for site in trace.site[swap & (trace.op == MALLOC)].tolist()}
    assert sites == set(MODULATIONS)
    freed = {trace.sites[site] for site in trace.site[swap & (trace.op == FREE)].tolist()}
    assert freed == {"negotiation", "V.34", "V.90"}
    starts = np.flatnonzero(swap & ~np.roll(swap, 1))
    assert (trace.op[starts] == FREE).all()


def test_five_full_instances_hold_what_the_paper_shows() -> None:
    trace = modem(calls=3000, seed=1)
    assert trace.peak_live_bytes == pytest.approx(29_788, rel=0.05)
    assert trace.peak_live_objects == pytest.approx(133, rel=0.05)
    assert set(np.unique(trace.tid)) == set(range(5))
    assert {"instances", "calls", "idle", "hold", "retrain", "memory", "seed"} <= set(trace.metadata)


def test_low_priority_is_refused_first_when_memory_runs_short() -> None:
    roomy = modem(instances=40, calls=3000, memory=1 << 20, seed=1)
    assert roomy.metadata["refused_low"] == roomy.metadata["refused_high"] == "0"
    tight = modem(instances=40, calls=3000, memory=100_000, low_priority=0.5, reserve=0.2, seed=1)
    low, high = int(tight.metadata["refused_low"]), int(tight.metadata["refused_high"])
    assert low > 1.3 * high > 0
    assert low + high + int(tight.metadata["connected"]) == 3000
    assert tight.peak_live_bytes + 4 * tight.peak_live_objects <= 100_000
    with pytest.raises(HeapwrightError, match="5 instances need 1000 bytes"):
        modem(memory=999)


# --- Poisson ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interarrival", [0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.0035])
def test_a_fixed_pool_admits_what_erlang_says(interarrival: float) -> None:
    recipe = Recipe.parse('[[pool]]\nkind = "fixed"\nsizes = [2048]\ncounts = [272]\nheader = 0\n')
    trace = poisson(interarrival=interarrival, requests=200_000, seed=11)
    admitted = replay(trace, recipe)["admitted_fraction"]
    assert admitted == pytest.approx(1 - erlang_b(1 / interarrival, 272), abs=0.01)


def test_poisson_requests_have_the_distributions_asked_for() -> None:
    trace = poisson(interarrival=0.01, min_size=100, max_size=103, hold=0.5, requests=100_000, seed=2)
    born = trace.ts_us[trace.op == MALLOC]
    gaps = np.diff(born)
    assert gaps.mean() == pytest.approx(10_000, rel=0.02) and gaps.std() == pytest.approx(10_000, rel=0.03)
    sizes, counts = np.unique(trace.size[trace.op == MALLOC], return_counts=True)
    assert sizes.tolist() == [100, 101, 102, 103] and counts.min() > 24_000
    freed = trace.op == FREE
    birth = dict(zip(trace.id[~freed].tolist(), born.tolist(), strict=True))
    held = [time - birth[object_] for time, object_ in zip(trace.ts_us[freed], trace.id[freed], strict=True)]
    assert np.mean(held) == pytest.approx(500_000, rel=0.02) and min(held) >= 1
    assert trace.live_objects[len(trace) // 2 :].mean() == pytest.approx(50, rel=0.1)
