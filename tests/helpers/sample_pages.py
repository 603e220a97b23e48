"""Pages and pictures of small inputs: a trace, a study with all that a page may show, and what commands draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sample_studies import IDS, identity, metrics, result, trace

from heapwright._assure.stress_test import StressTestResult
from heapwright._report import attack_picture, stress_picture
from heapwright._report.figure import Figure, dark_style
from heapwright._report.page import Content
from heapwright._report.pull_request import fronts_of
from heapwright._report.study_content import overview, study_content
from heapwright._report.trace_content import trace_content
from heapwright._report.trade_off import trade_off
from heapwright._studies.analysis import Analysis
from heapwright._studies.records import Grown, Measured, Result, TraceInfo
from heapwright._studies.study_diff import compare
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC

SITES = ("main;parse", "main;queue_add", "session_new")
POOLS = "wifi-special-pools"
"""A heap whose pools have regions of their own."""


def busy(calls: int = 900) -> Trace:
    """Objects of all ages, sizes and sites, with times; some are never freed."""
    draw, live, rows = np.random.default_rng(5), list[int](), list[tuple[int, int, int, int]]()
    for number in range(calls // 2):
        size = int(draw.choice([16, 40, 40, 100, int(draw.integers(8, 900))]))
        rows.append((MALLOC, number, size, int(draw.integers(3))))
        live.append(number)
        while live and draw.random() < (0.2 if len(live) < 60 else 0.55):
            rows.append((FREE, live.pop(int(draw.integers(len(live)))), 0, 0))
    op, ids, sizes, site = zip(*rows, strict=True)
    times = np.cumsum(draw.integers(1, 50, len(rows)))
    return Trace.from_columns(op=op, id=ids, size=sizes, site=site, sites=SITES, ts_us=times, name="busy")


PARTS = ("title", "lead", "facts", "front", "zoo", "held_out")
"""Of a page, in addition to its figures."""

FOOTPRINTS = (700, 800, 900, 1000, 1200, 5000, 830, 1900)
ACCESSES = (9000, 5000, 4000, 2500, 2400, 2300, 5200, 2900)
NAMES = (None, "victim-bins", None, "lea-2.7.2", None, "tlsf", "all-round", "kingsley")


def results(where: str, factor: float = 1.0) -> list[Result]:
    """Eight recipes: a front of six, one of the zoo behind it, and one that refuses requests."""
    contents = []
    for at, (memory, loads, name) in enumerate(zip(FOOTPRINTS, ACCESSES, NAMES, strict=True)):
        worst, failed = 7 * at + 9, 3 if name == "kingsley" else 0
        output = metrics(round(factor * memory), round(factor * loads), accesses_malloc_max=worst, failed=failed)
        contents.append(result(at, output, where, name))
    return contents


def measured(heap: str, malloc: list[list[int]], recipe: bool) -> dict[str, Any]:
    """What was counted of a heap on a board."""
    calls = {
        kind: {
            "count": sum(count for _, count in histogram),
            "instructions_mean": sum(item * count for item, count in histogram) / sum(count for _, count in histogram),
            "instructions_p999": histogram[-1][0],
            "instructions_max": histogram[-1][0],
            "instructions_histogram": histogram,
        }
        for kind, histogram in (("malloc", malloc), ("free", [[20, 1], [45, 3]]))
    }
    output = {"heap": heap, "backend": "unicorn 2.1.3", "note": "a note", "code_bytes": {"total": 777}}
    prediction = {"metadata_bytes": 1000, "metadata_equal": True, "ratio": 1.25} if recipe else None
    return {**output, "footprint_bytes": 54321, "calls": calls, "prediction": prediction}


def study_of(path: Path, factor: float) -> Analysis:
    """A search that was tried on copies and on a trace held out, and measured on a board."""
    later, file = trace("later", 100), path.with_name("busy.parquet")
    busy().write(file)
    explored = Trace.read(file)
    made = (trace(f"busy~{name}", at) for at, name in enumerate(("load-1", "sizes+blocks-1"), 30))
    copies = [replace(TraceInfo.of(item), seed=1) for item in made]
    study = Analysis.create_or_resume(path, identity([explored]))
    study.add(results("busy", factor))
    study.set_apart(copies, "copy")
    study.set_apart([TraceInfo.of(later)], "held out")
    for at, item in enumerate(copies):
        study.add(results(item.name, 1.1 + at), "copy")
    study.add(results("later", 0.6)[:6], "held out")
    for at in range(1, 5):
        study.add_growth(Grown("evolve", 3, 100 * at, 60.0 * at, 1.9 + (0.1 if at > 2 else at / 100)))
    rows = [
        (IDS[2], measured(IDS[2], [[20, 900], [40, 99], [150, 1]], True)),
        (IDS[5], measured("tlsf", [[90, 500], [130, 499], [1862, 1]], True)),
        ("lib:newlib", measured("lib:newlib", [[48, 990], [960, 10]], False)),
    ]
    pairs = [
        (id, {"instructions_pair_mean": output["calls"]["malloc"]["instructions_mean"]}, output) for id, output in rows
    ]
    study.add_measured("cortex-m3, gcc 12 -Os", [Measured(id, "busy", pair, output) for id, pair, output in pairs])
    return study


def plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Figure):
        return plain([value.title, value.note, value.words, value.width, value.whole_spec()])
    if is_dataclass(value) and not isinstance(value, type):
        return plain({key: getattr(value, key) for key in value.__dataclass_fields__})
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items() if key != "$schema"}
    if isinstance(value, (list, tuple, range, set, frozenset)):
        return [plain(part) for part in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.floating):
        return float(value)
    return value if isinstance(value, (str, float, int, bool, type(None))) else str(value)


def of_content(name: str, content: Content) -> dict[str, Any]:
    """Figures, animations and tables of a page, each by its name, but for the words of a decision."""
    contents: dict[str, Any] = {f"{name}: {figure.name}": figure for figure in content.figures()}
    for section in content.traces:
        contents |= {
            f"{name}: {animation.name}": [animation.title, animation.note, animation.still, animation.data]
            for animation in section.animations
        }
        contents |= {f"{name}: {section.name}, {at}": heap.detail for at, heap in enumerate(section.heaps)}
        contents |= {f"{name}: {section.name}, held": section.holding} if section.holding else {}
    contents |= {f"{name}: {part}": getattr(content, part) for part in PARTS if getattr(content, part)}
    if content.choice:
        recipes = [[recipe[key] for key in ("id", "kind", "name", "balanced")] for recipe in content.choice.recipes]
        contents[f"{name}: choice"] = [recipes, content.choice.axes, content.choice.rivals, content.choice.selected]
    return contents | {f"{name}: {item.title}": [item.lead, item.table] for item in content.target}


def pictures() -> dict[str, Any]:
    """What commands draw of an attack and of a stress test."""
    contents: dict[str, Any] = {}

    def kept(name: str) -> Callable[..., None]:
        return lambda *drawn: contents.update({f"picture: {name}": drawn[:-1]})

    counts = {"runs": 40, "at_once": 20, "later": 10, "harmless": 5, "silent": 4, "crashed": 1}
    attacks = [
        {
            "heap": "tlsf",
            "checks": level,
            "cpu": cpu,
            "faults": {"double_free": counts, "overflow": {**counts, "later": 9}},
        }
        for level, cpu in (("none", None), ("full", "cortex-m3"))
    ]
    loops = {"a pass": {100: 2000, 1000: 2100}, "churn": {100: 2000, 1000: 3000}}
    endured = [
        StressTestResult(item, "tlsf", 1.05, "churn", {"a pass": 1.0, "churn": 1.2}, True, (), 1000, loops)
        for item in ("a", "b")
    ]
    rooms = {"attack": attack_picture, "stress test": stress_picture}
    with ExitStack() as stack:
        for name, room in rooms.items():
            stack.enter_context(mock.patch.object(room, "write_drawing", kept(name)))
        attack_picture.write_picture(attacks, Path("a.svg"))
        stress_picture.write_picture(endured, Path("e.svg"))
    return contents


def off_the_front() -> Figure:
    """A pick that lies next to the front, an incumbent and some others, of which two would cover each other."""
    places = {
        "a": (100, 900),
        "b": (200, 500),
        "c": (600, 300),
        "pick": (230, 510),
        "rival": (900, 800),
        "d": (231, 590),
    }
    places |= {"e": (232, 591), "far": (4000, 5000), "third": (610, 480)}
    kinds = {"a": "front", "b": "front", "c": "front", "third": "front", "rival": "zoo"}
    rows = [
        {"id": id, "kind": kinds.get(id, "cloud"), "name": "tlsf" if id == "rival" else "", "balanced": id == "pick"}
        | {"footprint_bytes": memory, "accesses": loads}
        for id, (memory, loads) in places.items()
    ]
    return trade_off("plot", "a title", rows, "footprint_bytes", "accesses", ["rival"])


def drawn(folder: Path) -> dict[str, Any]:
    """Everything, by its name."""
    with study_of(folder / "s.duckdb", 1.0) as study, study_of(folder / "old.duckdb", 1.5) as old:
        outcome = of_content("study", study_content(study, (), "all-round"))
        outcome["study: overview"], outcome["study: fronts"] = overview(study), fronts_of(compare(old, study))
    outcome |= of_content("trace", trace_content(busy(), [POOLS, "victim-bins"]))
    return outcome | pictures() | {"off the front": off_the_front(), "dark": dark_style()}
