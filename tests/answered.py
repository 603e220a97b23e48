"""What the package answers where inputs never change, a digest an answer: `python tests/answered.py` writes the table.

A line stands for all that one call answers: numbers to nine digits, texts, columns of traces. What nobody meant to
change stays as it is; a change that is meant writes the table anew, and its commit says what is answered now.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
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
from made_traces import stack
from printed import within
from refusals import Answers, of_refusals, of_wrong_calls, or_error, packets, some_recipes
from rich.console import Console
from traces_random import plain_trace

import heapwright as hw
from heapwright.api import Moment
from heapwright.assure.attack.attack import levels
from heapwright.assure.attack.exploits import TECHNIQUES, why_not
from heapwright.assure.attack.exploits import arena_bytes as exploits_arena
from heapwright.assure.attack.faults import ample, arena_bytes, flags, mapped_bytes, program
from heapwright.assure.proof.edges import edge_names, neighbours
from heapwright.assure.proof.prove import harness_text, method_for, narrow, programs_of
from heapwright.cli.live_page import Page
from heapwright.decide.budgets import budgets
from heapwright.decide.by_load import picks_by_load
from heapwright.decide.changes import compare
from heapwright.decide.decision import Decision, decide
from heapwright.decide.picks import PICKS, design
from heapwright.decide.prior import doubt
from heapwright.decide.shipping import ToShip
from heapwright.decide.side_by_side import before_and_after, side_by_side
from heapwright.decide.study import Study
from heapwright.explore.families import Demand
from heapwright.explore.space import Space
from heapwright.files.version import __version__
from heapwright.measure.boards.cpus import CPUS
from heapwright.platforms.catalogue import platforms, tracers
from heapwright.platforms.files import firmware_files, platform_files, raised
from heapwright.recipes.policy import policy
from heapwright.recipes.recipe import Recipe
from heapwright.replay.film import frames, holes, last_growth, regions
from heapwright.replay.metrics import METRICS
from heapwright.replay.pictures import timeline
from heapwright.replay.replay import replay
from heapwright.replay.running import Standing
from heapwright.replay.what_if import cap
from heapwright.replay.worst_case import load_of, worst_case
from heapwright.replay.worst_found import OBJECTIVES
from heapwright.traces.site_classes import site_classes
from heapwright.traces.trace import Trace

TABLE = Path(__file__).with_name("answered.txt")
EXAMPLES = Path(__file__).parents[1] / "examples"

BUILT = r"engine\s[0-9a-f]{12}(?:,\s+(?:\*\s)?commit\s[0-9a-f]{12})?"
"""By which sources and commit the engine was built, which texts tell."""

FOUR = ("footprint_bytes", "accesses", "accesses_malloc_max", "accesses_free_max")


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
        case str():
            return re.sub(BUILT, "ENGINE", value).replace(__version__, "VERSION")
        case bool() | None | int():
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


# ---- what is asked ---------------------------------------------------------------------------------------------------


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


def sensor_frame(at: int) -> bytes:
    """IEEE 802.15.4 with addresses of all modes, in one network and two, secured and not, of three versions."""
    control = (0, 2, 3)[at % 3] << 10 | (0, 2, 3)[at // 3 % 3] << 14 | (at % 5 < 2) << 6 | (at % 7 == 0) << 3
    control |= (0, 0, 1, 2)[at // 9 % 4] << 12 | 1
    address = bytes(range(1 + at % 2, 21 + at % 2))
    return control.to_bytes(2, "little") + bytes([at]) + address[: at % 17 + 2] + b"\x41" + captures.udp6_packet(at)


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
"SENSOR": captures.pcap([sensor_frame(at) for at in range(60)], link=230),
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
    one, other = busy(200), stack(30)
    for recipe in (*hw.zoo(), *some_recipes()):
        told = {
            "canonical": recipe.canonical(), "summary": recipe.summary, "geometry": recipe.geometry,
            "reach": recipe.reach, "policy": policy(recipe), "design": design(recipe),
            "doubt": [doubt(recipe, lists=lists) for lists in (True, False)], "steps": hw.worst_steps(recipe),
            "worst case": [worst_case(trace, recipe) for trace in (one, other)],
            "moved": [or_error(recipe.at_alignment, at) for at in (4, 8, 16, 32)],
        }  # fmt: skip
        yield recipe.name or recipe.hash, told


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
    yield "programs of traces", [program(one, 3), program(plain_trace(9, calls=30_000), 3)]
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
    """C of random recipes, and of the zoo's in other forms."""
    for recipe in some_recipes()[:12]:
        yield recipe.hash, or_error(hw.generated_files, recipe, "net")
    for form in ({"inline": True}, {"behind": "malloc"}):
        for recipe in hw.zoo():
            yield f"{recipe.name}, {form}", or_error(hw.generated_files, recipe, "app", **form)
    for name in ("tlsf", "contiki-mmem", "windows-xp-lookaside"):
        yield f"{name}, watched", or_error(hw.generated_files, hw.zoo(name), watched=True)


def of_spaces() -> Answers:
    """What is tried by default, for demands of many kinds, and what metrics, processors and energy are."""
    few = ((40, 0.7), (512, 0.2), (12, 0.1))
    demands = {
        "traces": (Demand.of([busy(), plain_trace(4, calls=700)]), 8),
        "few": (Demand(few, 512, 9_000), 4),
        "large": (Demand((*few, (70_000, 0.0)), 70_000, 900_000), 16),
        "small": (Demand(((8, 1.0),), 8, 80), 8),
    }
    for name, (demand, align) in demands.items():
        space = Space.tailored(demand, align)
        yield f"of {name}", [demand, len(space), space.notes, [one.hash for one in space.recipes()], [*space.zoo]]
    yield "metrics", [METRICS, hw.default_energy_table()]
    yield "processors", CPUS


def of_live_pages() -> Answers:
    """What `live` shows of a program, moment by moment, on a terminal."""
    shown_to = Console(width=90, file=io.StringIO(), force_terminal=False, color_system=None)
    for arena in (None, 20_000):
        drawn = Page("board", arena)
        with shown_to.capture() as empty:
            shown_to.print(drawn)
        seen = [empty.get()]
        for calls, holders in ((0, []), (40, []), (4_000, [(f"main;f{at}", 900 - at) for at in range(11)])):
            at_peak = [(8 * at + 8, calls // (at + 1) + 1) for at in range(12)]
            curve = [at * 37 % 901 for at in range(calls // 4 + 1)]
            standing = {
                name: Standing(9_000 + calls, reserve, 800, calls // 100)
                for name, reserve in (("tlsf", None), ("a", 99))
            }
            drawn.add(
                Moment(calls / 7, calls, 700, 12, 900, 30, at_peak, holders, curve, standing, ["2 calls left out"])
            )
            with shown_to.capture() as page:
                shown_to.print(drawn)
            seen.append(page.get())
        yield f"in {arena}", seen


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
    one, other, apart = busy(), plain_trace(4, calls=300, name="plain"), plain_trace(6, calls=200, name="apart")
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
            lasting = name == "new"
            explore(traces, space, study_path=path, held_out=[apart], copies=2, complete=True, endurance=lasting)
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
    "spaces": of_spaces,
    "live pages": of_live_pages,
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
