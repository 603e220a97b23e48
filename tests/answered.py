"""What the package answers where inputs never change, a digest an answer: `python tests/answered.py` writes the table.

A line stands for all that one call answers: numbers to nine digits, texts, columns of traces. What nobody meant to
change stays as it is; a change that is meant writes the table anew, and its commit says what is answered now.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import brief
import captures
import heap_logs
import numpy as np
from drawn import busy
from exploring import explore
from known import known
from made_traces import packets_of, stack
from printed import within
from recipes_random import random_recipes
from traces_random import plain_trace

import heapwright as hw
from heapwright.assure.attack.attack import levels
from heapwright.assure.attack.exploits import TECHNIQUES, why_not
from heapwright.assure.attack.exploits import arena_bytes as exploits_arena
from heapwright.assure.attack.faults import ample, arena_bytes, flags, mapped_bytes, program
from heapwright.assure.proof.edges import edge_names, neighbours
from heapwright.assure.proof.prove import harness_text, method_for, narrow, programs_of
from heapwright.decide.budgets import budgets
from heapwright.decide.by_load import picks_by_load
from heapwright.decide.changes import compare
from heapwright.decide.decision import Decision, decide
from heapwright.decide.picks import PICKS, Condition, design
from heapwright.decide.prior import doubt
from heapwright.decide.shipping import ToShip
from heapwright.decide.side_by_side import before_and_after, side_by_side
from heapwright.decide.study import Study
from heapwright.explore.options import Options
from heapwright.explore.space import Space
from heapwright.files.errors import HeapwrightError
from heapwright.platforms.catalogue import platforms, tracers
from heapwright.platforms.files import firmware_files, platform_files, raised
from heapwright.recipes.policy import BeyondReachError, policy
from heapwright.recipes.recipe import Recipe
from heapwright.replay.film import frames, holes, last_growth, regions
from heapwright.replay.pictures import timeline
from heapwright.replay.replay import replay
from heapwright.replay.what_if import cap
from heapwright.replay.worst_case import load_of, worst_case
from heapwright.replay.worst_found import OBJECTIVES
from heapwright.traces.site_classes import site_classes
from heapwright.traces.trace import Trace

TABLE = Path(__file__).with_name("answered.txt")
EXAMPLES = Path(__file__).parents[1] / "examples"

FOUR = ("footprint_bytes", "accesses", "accesses_malloc_max", "accesses_free_max")

Answers = Iterator[tuple[str, Any]]


def shown(value: Any) -> Any:
    """A value as JSON takes it, the same on every machine."""
    match value:
        case Trace():
            columns = {
                key: getattr(value, key).tolist() for key in ("ts_us", "tid", "op", "id", "size", "align", "low")
            }
            more = {key: getattr(value, key).tolist() for key in ("phase", "site")}
            return shown([value.name, columns, more, value.phases, value.sites, value.metadata, value.repairs])
        case Recipe():
            return value.to_toml()
        case bool() | None | int() | str():
            return value
        case float() | np.floating():
            return f"{value:.9g}"
        case np.generic():
            return value.item()
        case np.ndarray():
            return shown(value.tolist())
        case Path():
            return value.name
        case Mapping():
            return [[shown(key), shown(one)] for key, one in value.items()]
        case Set():
            return sorted(map(json.dumps, map(shown, value)))
        case Sequence():
            return list(map(shown, value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [[one.name, shown(getattr(value, one.name))] for one in dataclasses.fields(value)]
        case _:
            return repr(value)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(shown(value)).encode()).hexdigest()[:16]


def or_error(find: Callable[..., Any], *given: Any, **how: Any) -> Any:
    """What is found, or the words of the error."""
    try:
        return find(*given, **how)
    except (HeapwrightError, BeyondReachError) as error:
        return f"{type(error).__name__}: {error}"


# ---- what is asked ---------------------------------------------------------------------------------------------------


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


def of_traces() -> Answers:
    """Traces: what is told of them, cut, merged, scaled, copied and written."""
    one, other, deep = busy(), plain_trace(4, calls=700, name="plain"), stack(40)
    broker = hw.cut(EXAMPLES / "mosquitto_broker.parquet", first=2500)
    for trace in (one, other, deep, broker):
        yield f"profile of {trace.name}", hw.profile(trace)
        yield f"facts of {trace.name}", hw.trace_facts(trace)
        yield f"objects of {trace.name}", hw.births_and_deaths(trace)
        yield f"sizes of {trace.name}", hw.size_table(trace.size)
        yield f"classes of sites of {trace.name}", [or_error(site_classes, [trace]), site_classes([trace, one], 2)]
    for trace in (one, other):
        for kind in hw.copy_kinds.KINDS:
            yield f"copies of {trace.name}, {kind}", hw.copies(trace, 2, kinds=[kind], seed=5)
        yield f"copies of {trace.name}", hw.copies(trace, 7, seed=6)
    parts: Sequence[dict[str, Any]] = (
        {"first": 300}, {"last": 250}, {"start": 100, "stop": 400}, {"first": 300, "close": False},
        {"start": 200, "live": True}, {"start": 200, "stop": 500, "live": True, "close": False},
        {"sites": ["session_new"]}, {"sites": ["main*"], "start": 50},
    )  # fmt: skip
    for how in parts:
        yield f"cut by {how}", hw.cut(one, **how)
    for kinds in (["sizes"], ["lifetimes", "streams"]):
        yield f"merged with {kinds}", hw.merge([one, *hw.copies(one, 2, kinds=kinds, seed=8)])
    scales: Sequence[dict[str, Any]] = (
        {"pointer_bytes": 8, "recorded_pointer_bytes": 4}, {"recorded_pointer_bytes": 8}, {"pointer_share": 0.3},
        {"peak_bytes": 9_000}, {"buffers": True}, {"buffers": False}, {"buffers": True, "peak_bytes": 40_000},
    )  # fmt: skip
    for trace in (one, broker):
        for how in scales:
            yield f"{trace.name} scaled by {how}", or_error(hw.scale, trace, **how)
    yield "diff", hw.diff(one, hw.copies(one, 1, seed=3)[0])
    yield "diff of others", hw.diff(one, other)


def of_traffic() -> Answers:
    """Packets and workloads."""
    table = packets()
    yield "profile", hw.profile(table)
    for seed in (1, 2):
        yield f"synthesised {seed}", hw.synthesise(hw.profile(table), 300, seed=seed)
    for name in ("drr", "easyport", "url", "queue"):
        yield name, hw.workload(name, table, load=0.8)
        yield f"{name} at loads", hw.workload(name, table, load=[0.5, 1.3])
        yield f"{name} peaks", hw.load_peaks(name, table, load=0.8)
    asked: Sequence[tuple[str, dict[str, Any]]] = (
        ("drr", {"size": "ip"}), ("drr", {"size": "frame", "quantum": 3000}), ("drr", {"rotation": "classic"}),
        ("drr", {"node": 0, "ring": 5, "extra": 0}), ("drr", {"queues": 3, "headers": 20}),
        ("drr", {"count": 200, "rate": 2e6, "load": None}), ("drr", {"longest_gap": 0.001}),
        ("easyport", {"load": 1.2, "extra": 32, "size": "ip", "ring": 20}), ("url", {"patterns": 7}),
        ("queue", {"load": 1.5, "limit": 20}), ("easyport", {"rate": 1e6}), ("url", {"rate": 1e6, "load": None}),
    )  # fmt: skip
    for name, how in asked:
        yield f"{name} {how}", or_error(hw.workload, name, table, **{"load": 0.9, **how})
    yield "poisson", hw.workload("poisson", requests=400, seed=3)
    yield "poisson swept", hw.sweep("poisson", "requests", [50, 90], seed=2)
    yield "modem", hw.workload("modem", seed=4)


def damaged(content: bytes, seed: int) -> bytes:
    """Some lines are lost, said twice or cut off, or the end is missing."""
    draw, lines = random.Random(seed), content.splitlines(keepends=True)
    for _ in range(1 + len(lines) // 12):
        at = draw.randrange(len(lines))
        lines[at] = draw.choice([b"", lines[at] * 2, lines[at][: len(lines[at]) // 2] + b"\n"])
    found = b"".join(lines)
    return found[: draw.randrange(len(found) // 2, len(found) + 1)] if draw.random() < 0.3 and found else found


def lossy_log(seed: int, lost: float) -> bytes:
    """Calls of a board that takes the lowest free address, of which some lines are lost."""
    draw, lines, held = random.Random(seed), list[str](), dict[int, int]()
    trace = plain_trace(seed, calls=400)
    for tick, (op, id, size) in enumerate(zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True)):
        if op == hw.FREE:
            lines.append(f"hw- {held.pop(id):#x} {tick}")
        else:
            held[id] = next(at for at in range(0x1000, 1 << 30, 0x800) if at not in held.values())
            lines.append(f"hw+ {held[id]:#x} {size} {tick}")
    return "\n".join(line for line in lines if draw.random() >= lost).encode() + b"\n"


def of_logs() -> Answers:
    """Logs and captures as they are, and damaged."""
    given = {name: getattr(heap_logs, name) for name in dir(heap_logs) if name.isupper()}
    logs = {name: text.encode() if isinstance(text, str) else text for name, text in given.items()}
    logs = {name: content for name, content in logs.items() if isinstance(content, bytes)}
    logs |= {
        "TRACEALYZER": heap_logs.tracealyzer(heap_logs.TRACEALYZER_EVENTS),
        "BOARD": heap_logs.board_lines().encode(),
    }
    logs |= {f"LOSSY {seed} {lost}": lossy_log(seed, lost) for seed in (1, 2) for lost in (0.0, 0.02, 0.2)}
    frames = [captures.tcp_frame(at * 37 % 900, back=at % 3 == 0, client_port=40_000 + at % 4) for at in range(40)]
    packets = {
        "PCAP": captures.pcap(frames), "PCAPNG": captures.pcapng(frames), "BIG": captures.pcapng(frames, order=">"),
        "RADIOTAP": captures.pcap([captures.radiotap(captures.WIFI)] * 9, link=127),
        "TSH": b"".join(captures.tsh_record(at * 900, captures.tcp_packet(at * 31 % 700)) for at in range(30)),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, within(Path(folder)):
        for name, content in logs.items():
            for seed in range(5):
                Path("calls.log").write_bytes(damaged(content, seed) if seed else content)
                yield f"{name}, damage {seed}", or_error(hw.import_log, "calls.log", repair=True)
        for name, content in packets.items():
            for seed in range(5):
                cut = random.Random(seed).randrange(len(content))
                Path("packets").write_bytes(content[:cut] + b"\xa5" * (seed // 3) + content[cut + seed :])
                yield f"{name}, damage {seed}", or_error(hw.import_packets, "packets")


def of_recipes() -> Answers:
    """Recipes: canonical forms, policies, doubts, worst steps."""
    for recipe in (*hw.zoo(), *some_recipes()):
        told = {
            "canonical": recipe.canonical(), "summary": recipe.summary, "geometry": recipe.geometry,
            "reach": recipe.reach, "policy": policy(recipe), "design": design(recipe),
            "doubt": [doubt(recipe, lists=lists) for lists in (True, False)], "steps": hw.worst_steps(recipe),
            "moved": [or_error(recipe.at_alignment, at) for at in (4, 8, 16, 32)],
        }  # fmt: skip
        yield recipe.name or recipe.hash, told


def of_refusals() -> Answers:
    """What recipe keys may be, and what is said of recipes in which one key or two have other values."""
    yield "schemas", [hw.schema("recipe"), hw.schema("space")]
    draw = random.Random(12)
    numbers = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 64, 100, 512, 4096, 70_000, 1 << 20, 1 << 31, -1)
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
                of[key] = draw.choice(wild if draw.random() < 0.2 else keys[key] or numbers)
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


def of_replays() -> Answers:
    """Replays: all metrics, admission, worst cases found and proved, arenas."""
    one, other = busy(), plain_trace(4, calls=900, name="plain")
    for recipe in hw.zoo():
        yield f"replay of {recipe.name}", [hw.replay(trace, recipe) for trace in (one, other)]
        yield f"replay of {recipe.name} in less", or_error(hw.replay, one, recipe, arena=20_000)
        yield f"worst of {recipe.name}", [worst_case(one, recipe), load_of(one, recipe)]
    for name in ("tlsf", "first-fit-slow-free", "drr-proposed", "half-fit"):
        for objective in OBJECTIVES:
            yield f"worst found of {name} by {objective}", hw.find_worst(other, name, objective, tries=60, seed=2)
        yield f"map of {name}", hw.heap_map(one, hw.zoo(name), 40)
    for name in ("tlsf", "fixed-pool", "variable-pool", "exact-bins"):
        yield f"fit of {name}", hw.fit(one, name, copies=2, growth=1.5, held_out=[other])
        for share in (0.5, 0.9, 1.0):
            yield f"{share} admitted by {name}", hw.admit([one, other], name, share)


def of_attacks_and_proofs() -> Answers:
    """What attacks and proofs run, as text, without running it."""
    one = busy(300)
    for seed in (0, 1):
        yield f"program {seed}", program(None, seed)
    yield "program of a trace", program(one, 3)
    records = program(None, 0)
    yield "room", [ample(records), mapped_bytes(5000), mapped_bytes(1 << 20)]
    for recipe in (*hw.zoo(), *some_recipes()[:40]):
        told: dict[str, Any] = {
            "flags": flags(recipe),
            "arena": or_error(arena_bytes, recipe, records),
            "levels": or_error(levels, recipe, None),
            "exploits": or_error(exploits_arena, recipe),
            "why not": [why_not(name, recipe) for name in TECHNIQUES],
            "edges": or_error(edge_names, recipe, policy(recipe), True),
            "method": method_for(recipe),
        }
        narrowed = narrow(recipe, 256)
        for name in ("calls", "misuse"):
            for method in ("cbmc", "enumeration"):
                told[f"{name} {method}"] = or_error(harness_text, narrowed, name, method, 3, 256, 32)
        yield recipe.name or recipe.hash, told
    yield "programs", [programs_of(name, calls, 128, 24) for name in ("calls", "misuse") for calls in (1, 2, 3)]
    yield (
        "neighbours",
        [neighbours([8, 16, 17, 100, 4096], bound, 1, most) for bound in (64, 5000) for most in (9, 999)],
    )


def of_platforms() -> Answers:
    """Files for each platform."""
    for name, platform in platforms().items():
        yield f"{name} files", platform_files(platform, "net")
        for heap in ("tlsf", "all-round", "freertos-heap4"):
            yield f"{name} of {heap}", or_error(firmware_files, platform, hw.zoo(heap), "net")
            yield f"{name} raises {heap}", or_error(raised, platform, hw.zoo(heap))
    yield "tracers", tracers()


def of_generated() -> Answers:
    """C of random recipes."""
    for recipe in some_recipes()[:12]:
        yield recipe.hash, or_error(hw.generated_files, recipe, "net")


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
            (("poisson", table), {}), (("modem",), {"sessions": 0}), (("modem",), {"seed": "x"}),
        ],
        hw.sweep: [(("drr", "load", []), {}), (("poisson", "seed", [1.5]), {}), (("poisson", "requests", [0]), {})],
        hw.synthesise: [((hw.profile(table), 0), {}), (({},), {}), (({"packets": 5},), {}), ((hw.profile(one),), {})],
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


def of_films() -> Answers:
    """What stands where in an arena, call by call, and what would stand elsewhere."""
    one = busy(500)
    for recipe in (*hw.zoo()[::4], *some_recipes()[:30:3]):
        arena = int(known(replay(one, recipe)["footprint_bytes"]))
        places = regions(recipe, arena)
        found = list(frames(one, recipe, arena, range(0, len(one), 61)))
        seen = [[frame, holes(frame.blocks, frame.extent, places)] for frame in found]
        beside = or_error(cap, one, recipe, found[-1], places, arena)
        yield (
            recipe.name or recipe.hash,
            [seen, places, last_growth(one, recipe, arena), timeline(one, recipe, 50), beside],
        )


def of_decisions() -> Answers:
    """What a small study leads to, explored on two traces, with copies, one held out, and endurance."""
    one, other, apart = busy(), plain_trace(4, calls=500, name="plain"), plain_trace(6, calls=300, name="apart")
    space = Space([[recipe for recipe in some_recipes() if recipe.align == 8][:25]])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(within(Path(folder)))
        for module, form, effort in brief.forms():
            stack.enter_context(mock.patch.object(module, form, effort))
        files = {trace.name: Path(f"{trace.name}.parquet") for trace in (one, other, apart)}
        for trace in (one, other, apart):
            trace.write(files[trace.name])
        one, other, apart = (Trace.read(path) for path in files.values())
        for name, traces in (("old", [one]), ("new", [one, other])):
            path = Path(f"{name}.duckdb")
            explore(traces, space, study_path=path, held_out=[apart], copies=2, complete=True, jobs=1)
        old, new = (stack.enter_context(Study.open(Path(f"{name}.duckdb"))) for name in ("old", "new"))
        for study in (old, new):
            yield from _of_study(study)
        changes = compare(old, new)
        yield "changes", [changes.sentences(), changes.as_json()]
        yield "by load", picks_by_load(new, [one, other])
        yield "before and after", before_and_after(decide(old), decide(new))


def _of_study(study: Study) -> Answers:
    name, keys = study.path.stem, study.objectives
    robust = study.robustness()
    for id in study.combined.ids:
        told = [robust.describe(id), robust.why_not(id), robust.why_not_lasting(id), study.needs(id)]
        yield f"{name}: {id}", [*told, [robust.doubt(id, how) for how in PICKS], [*robust.worst(id).items()]]
    yield f"{name}: reserves", [study.reserves, study.tuned_for, study.tried, study.caveat, study.question]
    yield f"{name}: fronts", [[one.id for one in study.front(some)] for some in (keys, ("footprint_bytes",), FOUR)]
    for how in PICKS:
        for where in ((), ("footprint_bytes < 20000",), ("reserve_bytes <= 16K", "accesses < 9000"), ("failed == 0",)):
            decision = or_error(decide, study, how, where=where)
            said = [decision.sentences(), side_by_side(decision)] if isinstance(decision, Decision) else decision
            yield f"{name}: {how} where {where}", [said, or_error(study.wins, how, where=where)]
        yield f"{name}: {how} against tlsf", or_error(decide, study, how, against="tlsf")
        yield f"{name}: order of {how}", study.may_ship(how)
    yield f"{name}: budgets", budgets(study)
    yield f"{name}: standings", study.zoo_standings()
    for pick in study.picks():
        ship = ToShip.of(study, pick)
        yield f"{name}: {pick} shipped", [ship.shipped(study.recipe(pick)), study.command(pick)]


GROUPS: Mapping[str, Callable[[], Answers]] = {
    "traces": of_traces,
    "traffic": of_traffic,
    "logs": of_logs,
    "recipes": of_recipes,
    "recipes refused": of_refusals,
    "replays": of_replays,
    "attacks and proofs": of_attacks_and_proofs,
    "wrong calls": of_wrong_calls,
    "films": of_films,
    "decisions": of_decisions,
    "platforms": of_platforms,
    "generated": of_generated,
}


def lines_of(group: str) -> list[str]:
    """What the questions of a group are answered with, found anew."""
    return [f"{digest(value)}  {group}: {name}" for name, value in GROUPS[group]()]


def kept() -> list[str]:
    return TABLE.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    TABLE.write_text("".join(f"{line}\n" for group in GROUPS for line in lines_of(group)), encoding="utf-8")
