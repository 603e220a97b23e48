"""The page about the modem concentrator: what its tables are made of, and that it does without a toolchain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heapwright.papers import measuring, modem
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


def test_the_page_without_a_toolchain_has_dashes_and_all_sections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "session", lambda: None)
    monkeypatch.setattr(measuring, "has_ticks", lambda: False)
    page = modem.page(None, lambda line: None, calls=60, most=2)
    text = page.write(tmp_path)[0].read_text()
    assert "| host ticks: malloc | – | – | – | – | – | – |" in text
    assert "| instructions: free | – | – | – | – | – | – |" in text
    assert "| the paper: malloc, µs | 2.80 | 2.89 | 2.72 | 3.24 |" in text
    assert (tmp_path / "modem-memory.png").is_file() and not (tmp_path / "modem-times.png").exists()
    claims = {claim.claim: claim for claim in page.claims}
    assert claims["first fit needs the same memory with slow and fast free"].holds
    assert not any("instructions" in claim for claim in claims)


@pytest.mark.skipif(measuring.session() is None, reason="no cross compiler or emulator")
def test_fast_free_takes_few_instructions_and_slow_free_many() -> None:
    trace = workload(calls=30)
    slow, fast = (measuring.on_target(load(name), trace) for name in ("first-fit-slow-free", "first-fit-fast-free"))
    assert slow is not None and fast is not None
    assert slow[0]["calls"]["free"]["instructions_mean"] > 3 * fast[0]["calls"]["free"]["instructions_max"]
