"""Poisson requests (Elsayed and Galal, "Building better memory management for high performance wired/wireless networks:
Part 2"): buffers of random size, asked for at random times and held for a random while.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright._support.errors import ParameterError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

MOST_REQUESTS = 1 << 30


def poisson(
    *,
    interarrival: float = 0.002,
    load: float | None = None,
    min_size: int = 80,
    max_size: int = 2000,
    hold: float = 1.0,
    requests: int = 1_000_000,
    low_priority: float = 0.0,
    seed: int = 0,
) -> Trace:
    """Requests that come as a Poisson process; sizes are uniform, holding times exponential.

    A heap that refuses a request drops it: it is a loss system, as a replay treats it. One time unit of the paper is a
    second; times are rounded to microseconds, and at equal times releases come first. The trace ends with its last
    request, in the steady state: what is held then is not released.

    Args:
        interarrival: mean seconds between requests; the paper's first experiment has 0.0005 to 0.0035.
        load: factor of the request rate: requests are `interarrival` / `load` seconds apart; None is 1.
        min_size, max_size: bytes, both included; the paper's first experiment has 80 and 2000.
        hold: mean seconds a buffer is held; the paper says 1.
        requests: how many; the paper says 1 million.
        low_priority: share of the requests that have low priority, drawn at random; a heap with a `reserve` may refuse
            them for that.
        seed: the same options and seed give the same trace.

    Raises:
        ParameterError: a value is out of range.
    """
    for name, seconds in (("interarrival", interarrival), ("hold", hold)):
        if not 0 < seconds < 1e9:
            raise ParameterError(f"{seconds:g}: must be more than 0 seconds, and less than 10^9", parameter=name)
    if load is not None and not 0 < load < 1e9:
        raise ParameterError(f"{load:g}: must be more than 0; 1 is one request each interarrival", parameter="load")
    between = interarrival / (load or 1)
    if not 0 <= min_size <= max_size <= 1 << 31:
        raise ParameterError(f"sizes {min_size} to {max_size}: 0 <= min <= max <= 2^31 is valid", parameter="max_size")
    if not 0 < requests <= MOST_REQUESTS:
        raise ParameterError(f"{requests}: 1 to {MOST_REQUESTS} is valid", parameter="requests")
    if requests * between >= 1e12:
        raise ParameterError(f"{requests} at {between:g} s take more than 30,000 years", parameter="requests")
    if not 0 <= low_priority <= 1:
        raise ParameterError(f"{low_priority:g}: must be a share, 0 to 1", parameter="low_priority")
    random = np.random.default_rng(seed)
    born = np.cumsum(random.exponential(between, requests)) * 1e6
    lifetimes = random.exponential(hold, requests) * 1e6
    size = random.integers(min_size, max_size, requests, endpoint=True)
    low = random.random(requests) < low_priority
    metadata = {
        "workload": "poisson",
        "synthetic": "true",
        "interarrival": f"{interarrival:g}",
        **({} if load is None else {"load": f"{load:g}"}),
        "min_size": str(min_size),
        "max_size": str(max_size),
        "hold": f"{hold:g}",
        "requests": str(requests),
        **({"low_priority": f"{low_priority:g}"} if low_priority else {}),
        "seed": str(seed),
    }
    return held_requests(born, lifetimes, size, metadata, low)


def held_requests(
    arrivals: NDArray[np.float64],
    lifetimes: NDArray[np.float64],
    sizes: NDArray[Any],
    metadata: dict[str, str],
    low: NDArray[np.bool_] | None = None,
) -> Trace:
    """Requests that arrive and are released at given times, in microseconds; `metadata["workload"]` names the trace.

    `low` says which have low priority; None: none has.

    It ends with its last request: what is held then is not released.
    """
    requests = len(arrivals)
    born = np.rint(arrivals).astype(np.int64)
    # A buffer is held for at least a microsecond: releases come first at equal times, but not before their request.
    lasting = np.maximum(np.rint(lifetimes), 1).astype(np.int64)
    born -= born[0]
    freed = np.flatnonzero(born + lasting <= born[-1])
    number = np.concatenate([np.arange(requests), freed])
    op = np.repeat(np.array([MALLOC, FREE], np.uint8), [requests, len(freed)])
    time = np.concatenate([born, (born + lasting)[freed]])
    order = np.argsort(time * 2 + (op == MALLOC), kind="stable")
    return Trace.from_columns(
        op=op[order],
        id=number[order],
        size=np.where(op == FREE, 0, sizes[number])[order],
        ts_us=time[order],
        low=None if low is None else (low[number] & (op == MALLOC))[order].astype(np.uint8),
        name=metadata["workload"],
        metadata=metadata,
    )
