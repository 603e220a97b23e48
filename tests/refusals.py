"""What is said of recipes and calls that cannot be, asked for by `answered.py`."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from drawn import busy
from made_traces import packets_of
from printed import within
from recipes_random import random_recipes

import heapwright as hw
from heapwright.decide.picks import Condition
from heapwright.explore.options import Options
from heapwright.files.errors import HeapwrightError
from heapwright.recipes.policy import BeyondReachError
from heapwright.recipes.recipe import Recipe

Answers = Iterator[tuple[str, Any]]


def or_error(find: Callable[..., Any], *given: Any, **how: Any) -> Any:
    """What is found, or the words of the error."""
    try:
        return find(*given, **how)
    except (HeapwrightError, BeyondReachError) as error:
        return f"{type(error).__name__}: {error}"


@cache
def some_recipes() -> list[Recipe]:
    """Random ones that reach what they keep, of all kinds."""
    return random_recipes(160, seed=1971)


def packets() -> hw.PacketTable:
    """Bursts of nine flows."""
    rng = np.random.default_rng(11)
    ip_len = rng.choice([40, 52, 576, 1500, 1500, 120], 600).tolist()
    table = packets_of(ip_len, [size + 14 for size in ip_len], rng.integers(0, 9, 600).tolist())
    return dataclasses.replace(table, ts_us=np.cumsum(rng.choice([1, 20, 300, 9_000], 600)))


def of_refusals() -> Answers:
    """What recipe keys may be, and what is said of recipes in which one key or two have other values."""
    yield "schemas", [hw.schema("recipe"), hw.schema("space")]
    draw = random.Random(12)
    numbers = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 64, 100, 512, 4096, 70_000, 1 << 20, 1 << 31, -1)
    sites: Sequence[list[str]] = (["main*"], ["main*", "parse"], ["*"], [""], [])
    lists: Sequence[list[int]] = ([], [8], [16, 8], [8, 16, 64], [24, 24], [100, 5000])
    words = sorted({str(word) for key in _keys().values() for word in key})
    for turn in range(100):
        found = []
        for recipe in draw.sample(some_recipes(), 20):
            data = recipe.to_dict()
            tables = [data, *data["pool"], *data["pool"]]
            for of in draw.sample(tables, draw.choice((1, 1, 2))):
                keys = _keys(of.get("kind"))
                key = draw.choice(sorted(keys.keys() - {"kind", "pool"}))
                wild = [draw.choice(numbers), draw.choice(lists), draw.choice(words), True, False, "8"]
                of[key] = draw.choice(
                    wild if draw.random() < 0.2 else sites if key == "sites" else keys[key] or numbers
                )
            found.append(or_error(lambda data=data: Recipe.from_dict(data, "given").canonical().hash))
        yield f"turn {turn}", found


@cache
def _keys(kind: str | None = "any") -> dict[str, list[Any]]:
    """The keys of a kind of pool, or of a heap, each with its words."""
    schema = hw.schema("recipe")
    found: dict[str, list[Any]] = {}
    for name, one in [("heap", schema), *schema["$defs"].items()]:
        told = one.get("properties", {}).get("kind", {}).get("const")
        if kind == "any" or told == kind or (kind is None and name == "heap"):
            for key, value in one.get("properties", {}).items():
                found[key] = [word for part in [value, *value.get("anyOf", [])] for word in part.get("enum", [])]
    return found


def of_wrong_calls() -> Answers:
    """What is said where something asked for cannot be."""
    one, table = busy(60), packets()
    asked: Mapping[Callable[..., Any], Sequence[tuple[tuple[Any, ...], dict[str, Any]]]] = {
        hw.copies: [((one, 0), {}), ((one, 2), {"kinds": ["sises"]}), ((one, 2), {"kinds": []}), ((one, -1), {})],
        hw.cut: [
            ((one,), {"first": 0}), ((one,), {"start": 50, "stop": 20}), ((one,), {"first": 3, "last": 4}),
            ((one,), {"phases": "none"}), ((one,), {"sites": "nowhere"}), ((one,), {"threads": 7}), ((one,), {}),
            ((one,), {"start": 900}), ((one,), {"first": timedelta(seconds=-1)}), ((one,), {"last": timedelta(0)}),
        ],
        hw.scale: [
            ((one,), {"pointer_bytes": 3}), ((one,), {"recorded_pointer_bytes": 5}), ((one,), {"pointer_share": 2.0}),
            ((one,), {"recorded_pointer_bytes": 8, "pointer_share": -0.1}), ((one,), {"peak_bytes": 0}),
            ((one,), {"pointer_share": 0.5, "peak_bytes": 10}),
        ],
        hw.merge: [(([],), {}), (([one],), {}), (([one, one],), {})],
        hw.diff: [((one, "nowhere.parquet"), {})],
        hw.workload: [
            (("dr", table), {}), (("drr",), {}), (("drr", table), {"load": 0}), (("drr", table), {"load": -1.0}),
            (("drr", table), {"quantum": 0}), (("drr", table), {"rotation": "new"}), (("drr", table), {"size": "all"}),
            (("drr", table), {"queues": 0}), (("drr", table), {"ring": 0}), (("drr", table), {"extra": -1}),
            (("drr", table), {"rate": 0.0}), (("drr", table), {"count": 0}), (("drr", table), {"longest_gap": -1.0}),
            (("drr", table), {"headers": -1}), (("drr", table), {"node": -2}), (("drr", table), {"quanta": 5}),
            (("url", table), {"patterns": -1}), (("queue", table), {"limit": 0}), (("easyport", table), {"extra": -5}),
            (("poisson",), {"requests": 0}), (("poisson",), {"hold": 0.0}), (("poisson",), {"interarrival": -1.0}),
            (("poisson", table), {}), (("poisson",), {"max_size": (1 << 31) + 1}), (("poisson",), {"load": 0.0}),
            (("poisson",), {"low_priority": 2.0}),
            (("poisson",), {"requests": 1 << 30, "interarrival": 1e6}), (("queue", table), {"burst": 0}),
            (("modem",), {"sessions": 0}), (("modem",), {"instances": 0}), (("modem",), {"calls": 0}),
            (("modem",), {"retrain": 2.0}), (("modem",), {"hold": 0.0}), (("modem",), {"memory": 10}),
            (("modem",), {"seed": "x"}),
        ],
        hw.sweep: [(("drr", "load", []), {}), (("poisson", "seed", [1.5]), {}), (("poisson", "requests", [0]), {})],
        hw.synthesise: [
            ((hw.profile(table), 0), {}), (({},), {}), (({"packets": 5},), {}), ((hw.profile(one),), {}),
            (({**hw.profile(table), "flows": 1 << 23},), {}), (({**hw.profile(table), "packets": 1 << 25},), {}),
        ],
        hw.admit: [((one, "tlsf", 0.0), {}), ((one, "tlsf", 1.1), {}), ((one, "tlfs", 0.5), {})],
        hw.fit: [
            ((one, "tlsf"), {"copies": -1}), ((one, "tlsf"), {"growth": 0.0}), ((one, "tlsf"), {"share": 0.0}),
            ((one, "tlsf"), {"step": 0}), ((one, []), {}), (([], "tlsf"), {}), ((one, "tlsf"), {"share": 1.5}),
        ],
        hw.replay: [
            ((one, "tlsf"), {"arena": 8}), ((one, "tlsf"), {"arena": 1 << 40}), ((one, "no.toml"), {}), ((one, []), {}),
            ((one, "STUDY:"), {}), ((one, "lib:nothing"), {}), ((one, "all-rund"), {}),
        ],
        hw.find_worst: [((one, "tlsf"), {"tries": 0}), ((one, "tlsf", "acceses"), {}), ((one, "kingsly"), {})],
        hw.endure: [((one, "tlsf"), {"calls": 10}), ((one, []), {})],
        hw.export_trace: [((one, "x.bin"), {"format": "elf"})],
        hw.import_log: [(("nothing.log",), {}), (("nothing.log",), {"format": "xtrace"})],
        hw.import_packets: [(("nothing.pcap",), {}), (("nothing.pcap",), {"format": "xcap"})],
        hw.generate: [
            (("tlsf", "out"), {"prefix": "2x"}), (("tlsf", "out"), {"platform": "dos"}), (("tlfs", "out"), {}),
            (("tlsf", "out"), {"behind": "lib"}), (("tlsf", "out"), {"prefix": "if"}),
        ],
        hw.hooks: [(("sqlite", "out"), {}), (("dos", "out"), {}), (("newlib", "out"), {"prefix": "9"})],
        hw.check: [
            ((one, "tlsf"), {"fail_if": "accesses"}), ((one, "tlsf"), {"fail_if": "acceses > 5"}),
            ((one, "tlsf"), {"fail_if": "accesses > +5%"}), ((one, "tlsf"), {"fail_if": "accesses > x"}),
            ((one, "tlsf"), {"budget": 0}), ((one, "tlsf"), {}),
        ],
        hw.platforms: [(("dos",), {})],
        hw.zoo: [(("tlfs",), {}), (("",), {})],
        hw.copy_kinds.Load: [((), {"times": 1}), ((), {"shift": 0.0}), ((), {"shift": 1.1}), ((), {"times": 1001})],
        hw.copy_kinds.Sizes: [((), {"spread": 0.0}), ((), {"spread": 9.0})],
        hw.copy_kinds.Lifetimes: [((), {"share": 0.0}), ((), {"stretch": -1.0}), ((), {"share": 2.0})],
        hw.copy_kinds.Streams: [((), {"shift": 0.0}), ((), {"shift": 1.5})],
        hw.copy_kinds.Blocks: [((), {"blocks": 1}), ((), {"reach": 0}), ((), {"blocks": 1 << 30})],
        hw.open_study: [(("nothing.duckdb",), {})],
        hw.prove: [(("tlsf",), {"method": "guess"})],
        Options: [
            ((), {"objectives": "acceses"}), ((), {"objectives": []}), ((), {"limit": 0}), ((), {"copies": -1}),
            ((), {"complete": True, "budget": 5.0}), ((), {"complete": True, "tolerance": 0.1}), ((), {"budget": 0.0}),
            ((), {"tolerance": 2.0}), ((), {"tolerance": 0.1, "objectives": "fragmentation"}),
            ((), {"objectives": "lasts"}), ((), {"objectives": ["accesses", "accesses"]}),
        ],
        Condition.parse: [((text,), {}) for text in ("accesses", "acceses < 5", "accesses < x", "reserve_bytes <= 5Q")],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, within(Path(folder)):
        for call, cases in asked.items():
            for at, (given, how) in enumerate(cases):
                try:
                    told = or_error(call, *given, **how)
                except (TypeError, ValueError, OSError) as error:
                    told = type(error).__name__
                yield f"{getattr(call, '__name__', '').rpartition('.')[2]} {at}", told
