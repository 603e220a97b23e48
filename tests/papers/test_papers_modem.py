"""The page about the modem concentrator: what its tables are made of."""

from __future__ import annotations

import numpy as np

from heapwright._recipes.zoo.catalogue import load
from heapwright._traces.trace import Trace
from heapwright._traffic.workloads.modem import UNITS
from heapwright._traffic.workloads.modem import modem as workload
from heapwright_papers import modem
from heapwright_papers.declared import Metrics, metrics
from heapwright_papers.modem import Swaps


def test_the_peak_is_split_as_the_blocks_lie() -> None:
    # 100 | 40, freed | 200: at the peak the 40 bytes are a hole that 60 do not fit.
    trace = Trace.from_columns(op=[0, 0, 0, 3, 0, 3], id=[0, 1, 2, 1, 3, 0], size=[100, 40, 200, 0, 60, 0])
    result = modem.peak(trace, load("first-fit-fast-free"))
    assert (result.used, result.headers) == (100 + 200 + 60, 4 * 4)
    assert result.fragments == 40
    assert result.physical == result.used + result.headers + result.control + result.fragments


def test_both_ways_of_freeing_need_the_same_memory_and_headers_of_a_word() -> None:
    trace = workload(calls=150, seed=2)
    peaks = {label: modem.peak(trace, recipe) for label, recipe in modem.heaps().items()}
    assert peaks[modem.FIRST_SLOW] == peaks[modem.FIRST_FAST]
    assert peaks[modem.BEST_SLOW] == peaks[modem.BEST_FAST]
    live = trace.peak_live_objects
    assert 4 * live <= peaks[modem.FIRST_FAST].headers < 4 * live * 1.2
    assert peaks[modem.BEST_TREE].control == peaks[modem.BEST_FAST].control + 4, "a root"


def test_a_swap_copies_what_its_instance_holds(no_tools: None) -> None:
    trace = workload(instances=1, calls=40, retrain=0.0, seed=3)
    result = modem.swaps_of(trace)
    # Without retraining a call swaps once, from negotiation to its modulation, and never in ISDN.
    negotiated = trace.site[(trace.op == 0) & (trace.phase == trace.phases.index("connect"))]
    calls = np.count_nonzero(negotiated == trace.sites.index("negotiation")) // len(UNITS["negotiation"])
    assert len(result.contexts) == calls > 0 and not result.connected.any()
    assert set(result.contexts) == {sum(UNITS["control"]) + sum(UNITS["negotiation"])}
    assert result.copy is None


def test_swaps_of_connected_calls_hold_more(no_tools: None) -> None:
    trace = workload(calls=200, retrain=1.0, seed=4)
    result = modem.swaps_of(trace)
    assert 0 < result.connected.sum() < len(result.contexts)
    assert result.context(connected=True) > 3 * result.contexts[~result.connected].mean()
    apart = modem._retrains_apart(trace)
    rows = np.count_nonzero(trace.phase == trace.phases.index("swap"))
    swapped, retrained = (np.count_nonzero(apart.phase == apart.phases.index(name)) for name in ("swap", "retrain"))
    assert swapped + retrained == rows and swapped > 0 < retrained


def test_a_swap_takes_its_copy_and_its_share_of_what_the_allocator_takes() -> None:
    swaps = Swaps(np.array([100, 100, 400]), np.array([False, False, True]), copy=5.0)
    assert (swaps.context(connected=False), swaps.context(connected=True)) == (200, 400)
    inside = Metrics(inside={"swap": 300.0, "retrain": 60.0})
    assert (swaps.allocator(inside, connected=False), swaps.allocator(inside, connected=True)) == (120, 60)
    untold = metrics("modem", "response", {"accesses": 6}, calls=3, whole=None, full=None)
    assert untold.accesses == 2 and swaps.allocator(untold, connected=True) is None


def test_deferred_coalescing_splits_less_and_shares_are_of_the_physical_memory() -> None:
    assert modem._splits("deferred") < modem._splits("immediate")
    peak = metrics("modem", "peak", physical=1000, used=900, headers=40, control=10)
    length = metrics("modem", "length", peaks=[peak])
    assert (length.fragments, length.used) == ([0.05], [0.9])
