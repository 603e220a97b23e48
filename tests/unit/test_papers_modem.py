"""The page about the modem concentrator: what its tables are made of, and that it does without a toolchain."""

from __future__ import annotations

import numpy as np

from heapwright.papers import modem
from heapwright.traces.trace import Trace
from heapwright.workloads.modem import modem as workload
from heapwright.zoo.catalogue import load


def test_the_peak_is_split_as_the_blocks_lie() -> None:
    # 100 | 40, freed | 200: at the peak the 40 bytes are a hole that 60 do not fit.
    trace = Trace.from_columns(op=[0, 0, 0, 3, 0, 3], id=[0, 1, 2, 1, 3, 0], size=[100, 40, 200, 0, 60, 0])
    found = modem.peak(trace, load("first-fit-fast-free"))
    assert (found.used, found.headers) == (100 + 200 + 60, 4 * 4)
    assert found.fragments == 40
    assert found.physical == found.used + found.headers + found.control + found.fragments


def test_both_ways_of_freeing_need_the_same_memory_and_headers_of_a_word() -> None:
    trace = workload(calls=150, seed=2)
    peaks = {label: modem.peak(trace, recipe) for label, recipe in modem.heaps().items()}
    assert peaks[modem.FIRST_SLOW] == peaks[modem.FIRST_FAST]
    assert peaks[modem.BEST_SLOW] == peaks[modem.BEST_FAST]
    live = trace.peak_live_objects
    assert 4 * live <= peaks[modem.FIRST_FAST].headers < 4 * live * 1.2
    assert peaks[modem.INDEXED].control > 1000, "list heads"


def test_a_swap_is_one_unit_replaced_by_another() -> None:
    trace = workload(instances=1, calls=40, retrain=0.0, seed=3)
    # Without retraining a call swaps once, from negotiation to its modulation, and never in ISDN.
    negotiated = trace.site[(trace.op == 0) & (trace.phase == trace.phases.index("connect"))]
    blocks_of_negotiation = 3
    expected = np.count_nonzero(negotiated == trace.sites.index("negotiation")) // blocks_of_negotiation
    assert modem.swaps(trace) == expected > 0
