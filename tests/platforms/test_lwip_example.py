"""bench/rtos.py: lwIP's example application on FreeRTOS, recorded on an emulated board and run with a heap of ours."""

from __future__ import annotations

import originals
import pytest
import rtos
from platform_builds import CORTEX_M3, cross_compiler
from rtos_load import Load
from tool_requirements import missing

import heapwright as hw

SECONDS = 2
BRISK = Load(pause=0.1)
SCARCE = 40_000
"""Bytes in which it starts, and serves a few clients at once."""
TASKS = 6
"""The application's own, lwIP's, and those of both echoes, the characters and the shell; idle, it allocates nothing."""

pytestmark = pytest.mark.needs("arm-none-eabi-gcc", "qemu-system-arm")


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> rtos.Application:
    cross_compiler((*CORTEX_M3, *rtos.LIBRARY))
    try:
        return rtos.Application.built(tmp_path_factory.mktemp("application"), "-O0")
    except originals.MissingError as error:
        missing(str(error))


def test_it_is_recorded_and_served_by_another_heap(application: rtos.Application) -> None:
    trace = rtos.recorded(application, BRISK, SECONDS)
    assert trace.tid is not None and len(set(trace.tid.tolist())) == TASKS
    heap = rtos.generated(application, "all-round", hw.zoo("all-round"))
    need = hw.fit(trace, heap.recipe, copies=0).smallest_arena_bytes
    assert need is not None
    (ample,) = rtos.runs_of(application, heap, 2 * need, [(BRISK, 2)], SECONDS)
    assert ample.refused == 0 and ample.served > 10 and ample.most < 2 * need
    (scarce,) = rtos.runs_of(application, heap, SCARCE, [(BRISK.times(4), 2)], SECONDS)
    assert scarce.refused > 0
