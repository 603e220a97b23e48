"""What the package makes of inputs that stay the same, a digest each: `python tests/products.py` writes the table.

What users see, store or ship stays as it is unless a change means it: `tests/unit/test_products.py` compares. Where it
fails, `python tests/products.py FOLDER`, there and at an older commit, writes the products side by side to compare; the
table is written anew, and the commit says what has changed and why.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import os
import random
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import altair as alt
import numpy as np
import pydantic

from heapwright.files.version import __version__

TABLE = Path(__file__).with_name("products.txt")

Products = Iterator[tuple[str, Any]]

_TIMES = re.compile(
    r"seconds|^ns_|^made|^started|_at$|^begun$|^created$|^machine$|^version$|^schema$|^\$schema$|^thumb|^tried_in$"
)
"""Keys of what is another each time, or each release."""

_SPENT = re.compile(r"\d[\d.,]* ?(?:s|ms|us|µs|ns|min|seconds?)\b|\d{4}-\d\d-\d\d[T ][\d:.+]+")
_LONG = re.compile(r"-?\d+\.\d{4,}(?:e-?\d+)?")


def versions() -> str:
    """Those of what draws, prints and counts: others word and round otherwise."""
    return ", ".join(f"{name} {version(name)}" for name in ("altair", "click", "duckdb", "numpy", "pydantic", "rich"))


def made_with() -> str:
    """The versions that the digests are of: those of constraints.txt for Python 3.11."""
    return TABLE.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def plain(value: Any) -> Any:
    """As JSON can hold it, without what is another each time; numbers to six digits: processors differ in the last."""
    if isinstance(value, alt.TopLevelMixin):
        return plain(value.to_dict(validate=False))
    if isinstance(value, pydantic.BaseModel):
        return plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            "": type(value).__name__,
            **plain({one.name: getattr(value, one.name) for one in dataclasses.fields(value)}),
        }
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items() if not _TIMES.search(str(key))}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, map(plain, value)))
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, Path):
        return value.name
    return value if value is None or isinstance(value, bool | int) else words(str(value))


def words(text: str) -> str:
    """Without folders, moments, what was spent, and the release."""
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}[^\s\"']*/", "", text).replace(__version__, "RELEASE")
    return _LONG.sub(lambda found: f"{float(found[0]):.6g}", _SPENT.sub("TIME", text))


def text_of(product: Any) -> str:
    return json.dumps(plain(product), indent=1, ensure_ascii=False, default=str)


def digest(product: Any) -> str:
    return hashlib.sha256(text_of(product).encode()).hexdigest()[:16]


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# ---- what is made --------------------------------------------------------------------------------------------------


def recipes() -> Products:
    """What the core is told of each heap, and what people are told."""
    from recipes_random import random_recipes

    from heapwright.recipes.policy import policy
    from heapwright.recipes.worst_steps import worst_steps
    from heapwright.recipes.zoo import catalogue
    from heapwright.recipes.zoo.facts import facts

    for name in catalogue.names():
        recipe = catalogue.load(name)
        if not recipe.memory:
            yield f"{name}: policy", policy(recipe)
        yield f"{name}: in words", [recipe.summary(), recipe.to_toml(), recipe.hash, facts(recipe), worst_steps(recipe)]
    for number, recipe in enumerate(random_recipes(120, 4)):
        told = [recipe.summary(), recipe.hash, recipe.to_toml(), recipe.reach, worst_steps(recipe)]
        yield f"recipe {number}", [policy(recipe), *told]


def spaces() -> Products:
    """Which recipes are tried."""
    from traces_random import plain_trace

    import heapwright as hw
    from heapwright.explore import families
    from heapwright.explore.taught import tailored_to, taught

    for align in (4, 8):
        traces = [plain_trace(5, 400)]
        levels = families.Levels(families.Demand.of(traces), align)
        for number, family in enumerate(families.default_families(levels)):
            yield f"family {number}, alignment {align}", [recipe.hash for recipe in family]
        named = [tailored_to(told, levels) for told in taught().recipes]
        yield f"what other programs taught, alignment {align}", [recipe and recipe.hash for recipe in named]
    yield "schema", hw.schema()


PACKETS = ("drr", "easyport", "queue", "url")
COMMANDS = (
    "profile a.parquet", "profile packets.parquet", "profile sites.parquet --json",
    "replay a.parquet b.parquet --heap tlsf --heap first-fit-fast-free",
    "replay a.parquet --heap victim-bins --arena 9000", "replay sites.parquet --heap tlsf --fit --json",
    "fit a.parquet --heap tlsf --copies 2", "fit a.parquet --heap lea-2.7.2 --copies 1 --held-out b.parquet --json",
    "fit a.parquet --heap fixed-pool --admit 0.95",
    "check a.parquet --heap tlsf --budget 60000 --junit junit.xml --sarif sarif.json",
    "check a.parquet --heap tlsf --budget 100 --json", "check sites.parquet --heap tlsf --baseline a.parquet",
    "trace info a.parquet sites.parquet", "trace info packets.parquet --json",
    "trace copies sites.parquet --count 2 -o copied",
    "trace cut sites.parquet --start 50 --stop 200 --live -o cut.parquet",
    "trace cut sites.parquet --phase work --leave-live -o phase.parquet", "trace diff a.parquet sites.parquet",
    "trace diff a.parquet b.parquet --json", "trace export a.parquet --format c -o a.c",
    "trace export a.parquet --format minimalloc -o a.csv", "trace export a.parquet --format malloclab -o a.rep",
    "trace merge a.parquet b.parquet -o merged.parquet",
    "trace merge sites.parquet b.parquet -o named.parquet --json",
    "trace scale a.parquet --recorded-pointer-bytes 8 --pointer-bytes 4 --pointer-share 0.5 -o scaled.parquet",
    "trace scale a.parquet --peak 2 -o peaked.parquet", "trace worst a.parquet tlsf --tries 6 -o worst.parquet",
    "zoo", "zoo tlsf", "zoo victim-bins --json", "zoo --json",
    "zoo wifi-special-pools --from-profile packets.parquet", "platforms", "platforms lwip", "platforms --json",
    "hooks freertos -o hooked",
    "study info s.duckdb", "study info s.duckdb --json", "study export s.duckdb -o s.csv",
    "study diff s.duckdb t.duckdb --json", "study again s.duckdb:tlsf --trace a",
    "study sql s.duckdb DESCRIBE", "pareto s.duckdb", "pareto s.duckdb --all --json",
    "pareto s.duckdb --pick balanced", "pareto s.duckdb --pick fastest --toml",
    "pareto s.duckdb --pick smallest --json", "pareto s.duckdb --against tlsf --where accesses<100000",
    "pareto s.duckdb --objectives footprint_bytes,energy_nJ", "report s.duckdb --no-plots -o s.html",
    "report t.duckdb --baseline s.duckdb --format github", "report a.parquet --no-plots -o a.html",
    "endure a.parquet --heap first-fit-fast-free --calls 10000",
    *(f"workload {name} packets.parquet --load 0.8 -o {name}.parquet" for name in PACKETS),
    *(f"workload {name} packets.parquet --count 200 -o {name}.parquet --json" for name in PACKETS),
    "workload modem --calls 12 --seed 3 -o modem.parquet",
    "workload modem --calls 8 --instances 3 --low-priority 0.5 -o m.parquet",
    "workload poisson --requests 300 -o poisson.parquet --json",
    "workload poisson --requests 200 --low-priority 0.3 --hold 9 --load 4 -o low.parquet", "explore a.parquet",
    "replay none.parquet", "replay a.parquet --heap ttlsf", "zoo tslf", "import s.duckdb -o x.parquet",
    "pareto a.parquet", "report packets.parquet -o x.html", "generate tlsf --platform mars -o x",
    "fit a.parquet --heap s.duckdb:no",
    "explore a.parquet sites.parquet --space space.toml --complete --copies 1 --no-endurance --jobs 1 -o e.duckdb",
    "explore a.parquet --space space.toml --energy-table energy.csv --objectives energy_nJ,reserve -o h.duckdb",
    "explore a.parquet --space wrong.toml -o h.duckdb", "explore a.parquet --tolerance 0.1 --complete -o h.duckdb",
    "suggest a.parquet --toml --json", "study merge s.duckdb t.duckdb -o m2.duckdb",
    "study merge s.duckdb a.parquet -o m3.duckdb", "study again s.duckdb:tlsf --trace none",
    "study again s.duckdb:none", "study export s.duckdb -o s.parquet.xyz",
    "study sql s.duckdb 'SELECT trace, count(*) FROM results GROUP BY 1' --json",
    "study sql s.duckdb 'DROP TABLE results'",
    "study info a.parquet", "pareto s.duckdb --toml", "pareto s.duckdb --pick balanced --toml --json",
    "pareto s.duckdb --where accesses", "pareto s.duckdb --where accesses<1", "pareto s.duckdb --against nothing",
    "pareto s.duckdb --objectives accesses/calls,nothing",
    "pareto s.duckdb --objectives 'accesses / calls,footprint_bytes' --all", "fit a.parquet",
    "fit a.parquet --heap tlsf --sweep interarrival=1", "fit a.parquet --heap recipe.toml --step 64",
    "fit --workload poisson --set requests=300 --sweep interarrival=0.001,0.002 --heap fixed-pool --admit 0.9",
    "fit --workload modem --set calls=9 --set idle=3 --heap tlsf --heap victim-bins",
    "fit --workload modem --set none=9 --heap tlsf",
    "fit a.parquet b.parquet --heap tlsf --share 2 --growth 1.5 --copies 1 --json",
    "fit a.parquet --heap tlsf --clients 2:3 --copies 1",
    "check a.parquet sites.parquet --heap tlsf --fail-if failed>0 --fail-if accesses>9 --held-out b.parquet",
    "check a.parquet --heap tlsf --fail-if 'nothing > 3'",
    "check a.parquet --heap tlsf --baseline b.parquet --budget 64K --growth 2 --json",
    "trace copies a.parquet --kind sizes --kind load --count 3 -o more --json",
    "trace cut sites.parquet --thread 1 -o t1.parquet",
    "trace cut sites.parquet --site parse --site m* -o s2.parquet --json",
    "trace cut a.parquet --first 60 -o f.parquet",
    "trace cut sites.parquet --last 0.0005s --live --leave-live -o l.parquet",
    "trace cut sites.parquet --site none -o n.parquet",
    "trace scale sites.parquet --pointer-bytes 8 --pointer-share 0.5 --buffers -o s3.parquet --json",
    "trace scale a.parquet --peak 90000 -o s4.parquet", "trace diff sites.parquet recorded.parquet",
    "trace info none.parquet", "trace export sites.parquet --format malloclab -o - --json",
    "trace worst a.parquet drr-proposed --objective accesses --tries 5 --seed 2 -o w.parquet --json",
    "replay a.parquet --heap recipe.toml --energy-table energy.csv", "replay a.parquet --heap wrong.toml",
    "replay packets.parquet --heap tlsf",
    "replay a.parquet sites.parquet --heap s.duckdb:tlsf --heap drr-proposed --json",
    "replay a.parquet --heap tlsf --arena 100",
     "generate recipe.toml --prefix 9x -o bad",

    "zoo --schema", "zoo tlsf --from-profile packets.parquet", "platforms freertos", "platforms mars",
    "hooks mars -o x", "hooks lwip -o x --prefix mine --json", "import text.log -o i1.parquet",
    "import valgrind.log -o i2.parquet --json", "import esp.log -o i3.parquet", "import packets.csv -o p1.parquet",
    "import packets.csv --format csv --json -o p2.parquet", "import text.log --format valgrind -o i4.parquet",
    "import text.log --arena 120 --repair -o i5.parquet", "import profile.json --count 90 --seed 3 -o p3.parquet",
    "profile none.parquet", "profile text.log",
    "workload drr packets.parquet --ring 20 --queues 4 --quantum 500 --rotation classic --load 0.9 -o w1.parquet",
    "workload drr packets.parquet --extra 8 --headers 20 --node 16 --load 0.9 -o w9.parquet",
    "workload queue packets.parquet --limit 9 --burst 5 --cycles 3 -o w2.parquet",
    "workload queue packets.parquet --all --load 0.7 -o w3.parquet",
    "workload url packets.parquet --patterns 7 --size ip --rate 9000000 -o w4.parquet --json",
    "workload easyport packets.parquet --load 0.5,0.9 -o w5.parquet",
    "workload easyport packets.parquet --longest-gap 0.0001 --ring 5 --size frame --load 0.9 -o w6.parquet",
    "workload drr a.parquet -o w7.parquet",
    "workload modem --instances 2 --calls 6 --idle 3 --hold 9 --retrain 0.5 --seed 5 -o w8.parquet",
    "workload modem --calls 6 --memory 20000 --reserve 2 --seed 5 -o w10.parquet --json",
    "report s.duckdb --heap none --no-plots -o r4.html",
    "report s.duckdb --baseline a.parquet --no-plots -o r6.html", "measure tlsf a.parquet --cpu z80",
    "attack tlsf --checks most", "attack relocating-lazy", "prove tlsf --calls 0", "tlsf",
)  # fmt: skip
"""What is asked in a folder of small traces, packets and studies; some of it is wrong."""


def made(folder: Path) -> None:
    """The files that commands are given."""
    from exploring import explore
    from networks import network
    from traces_random import plain_trace

    import heapwright as hw
    from heapwright.explore.space import Space
    from heapwright.recipes.recipe import Recipe

    a, b = plain_trace(1, 250, "a"), plain_trace(2, 250, "b")
    for trace in (a, b):
        trace.write(folder / f"{trace.name}.parquet")
    count = np.arange(len(a))
    labels: dict[str, Any] = {
        "site": count % 3,
        "sites": ("main", "parse", "keep"),
        "phase": count // 150,
        "phases": ("start", "work", "end"),
    }
    times: dict[str, Any] = {"ts_us": count * 7, "tid": count % 2, "metadata": {"program": "app", "pointer_bytes": "4"}}
    hw.Trace.from_columns(op=a.op, id=a.id, size=a.size, name="sites", **labels, **times).write(
        folder / "sites.parquet"
    )
    packets = network(3)
    columns = ("ts_us", "frame_len", "ip_len", "proto", "flow", "dir")
    hw.PacketTable(**{key: getattr(packets, key)[:600] for key in columns}).write(folder / "packets.parquet")
    for name, text in given_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "profile.json").write_text(json.dumps(hw.profile(folder / "packets.parquet")), encoding="utf-8")
    general = [{"order": order, "split": split} for order in ("lifo", "address") for split in ("always", 64)]
    recipes = [Recipe.from_dict({"pool": [{"kind": "general", **keys}]}) for keys in general]
    options: dict[str, Any] = {"jobs": 1, "copies": 2, "endurance": False, "complete": True, "held_out": [b]}
    traces = [hw.Trace.read(folder / f"{name}.parquet") for name in ("a", "sites")]
    for name, tried in (("s", recipes[:3]), ("t", recipes)):
        study = folder / f"{name}.duckdb"
        explore(traces, Space([tried]), study_path=study, **options)
        add_measured(study)


def given_texts() -> dict[str, str]:
    """Files that are written by hand."""
    from heap_logs import ESP_IDF, TEXT, VALGRIND

    return {
        "text.log": TEXT,
        "valgrind.log": VALGRIND,
        "esp.log": ESP_IDF,
        "packets.csv": "time;length;ip;protocol\n0.5;60;40;6\n0.7;1514;1500;17\nx;1\n",
        "recipe.toml": 'name = "mine"\n[[pool]]\nkind = "general"\norder = "address"\n',
        "wrong.toml": 'align = 3\n[[pool]]\nkind = "generel"\nordre = 1\n',
        "space.toml": '[[pool]]\nkind = "general"\norder = ["lifo", "address"]\nsplit = ["always", 64]\n',
        "energy.csv": "size_bytes,read_pJ,write_pJ\n1024,10,12\n65536,30,34\n",
    }


def add_measured(path: Path) -> None:
    """What a board would tell of three heaps."""
    from heapwright.decide.study import Study
    from heapwright.studies.records import Measured

    with Study.open(path, write=True) as study:
        found = []
        for number, id in enumerate(sorted(study.combined.ids)[:3], 1):
            counts = [[20 * number, 90], [40, 9], [150, number]]
            mean = sum(instructions * calls for instructions, calls in counts) / (99 + number)
            few = {"count": 99 + number, "instructions_mean": mean, "instructions_histogram": counts}
            calls = {
                kind: {**few, "instructions_p999": 150, "instructions_max": 150 * number} for kind in ("malloc", "free")
            }
            prediction = {"metadata_bytes": 1000, "metadata_equal": True, "ratio": 1.25} if number < 3 else None
            detail = {
                "heap": id, "backend": "unicorn 2.1.3", "note": "As it is." if number == 1 else None,
                "code_bytes": {"total": 700 + number}, "footprint_bytes": 5432, "calls": calls,
                "prediction": prediction,
            }  # fmt: skip
            found.append(Measured(id, "a", {"instructions_pair_mean": mean + 20}, detail))
        study.add_measured("cortex-m3, gcc", found)


def commanded(folder: Path, command: str) -> Any:
    """What a command says and writes in a folder of what `made` makes; pictures are what they are drawn from."""
    from click.testing import CliRunner

    from heapwright.cli import heapwright
    from heapwright.report.figure import Figure

    def undrawn(figure: Figure, width: int | None = None) -> str:
        return text_of([width, figure.whole_spec()])

    screen = mock.patch.dict(os.environ, {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1"})
    with inside(folder), screen, mock.patch.object(Figure, "still", undrawn):
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        ended = CliRunner().invoke(heapwright, shlex.split(command), terminal_width=100)
        error = "" if ended.exception is None or isinstance(ended.exception, SystemExit) else str(ended.exception)
        changed = [path for path in sorted(folder.rglob("*")) if before.get(path) != path.stat().st_mtime_ns]
        files = {str(path.relative_to(folder)): content(path) for path in changed if path.is_file()}
        return [ended.exit_code, error, said(ended.stdout), ended.stderr.splitlines(), files]


def said(text: str) -> Any:
    """Lines, or what JSON holds."""
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def content(path: Path) -> Any:
    """What a file holds: calls of a trace, and the text of others; the file of a study is another each time."""
    from heapwright.files.kinds import kind_of
    from heapwright.traces.trace import Trace
    from heapwright.traffic.packets import PacketTable

    if path.suffix == ".duckdb":
        return "a study"
    if path.suffix == ".parquet":
        if kind_of(path) == "packets":
            return PacketTable.read(path)
        trace = Trace.read(path)
        return [trace.name, trace.metadata, trace.op, trace.id, trace.size, trace.ts_us, trace.site, trace.sites]
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        packed = re.compile(r"H4sI[A-Za-z0-9+/]+=*")
        hidden = [said(gzip.decompress(base64.b64decode(one)).decode()) for one in packed.findall(text)]
        return [hidden, packed.sub("", text).splitlines()]
    return said(text) if path.suffix in (".json", ".sarif") else text.splitlines()


def firmware() -> Products:
    """What is written for each platform beside a heap, and which heaps it takes."""
    from heapwright.files.errors import HeapwrightError
    from heapwright.platforms import catalogue, files
    from heapwright.recipes.zoo import catalogue as zoo

    def taken(platform: catalogue.Platform, name: str) -> Any:
        try:
            recipe = files.recipe_for(platform, zoo.load(name))
        except HeapwrightError as error:
            return str(error)
        return [recipe.to_toml(), files.raised(platform, zoo.load(name))]

    for name, platform in catalogue.platforms().items():
        yield f"platform {name}", files.platform_files(platform, "mine")
        yield f"heaps of {name}", {heap: taken(platform, heap) for heap in zoo.names()}
    for name in catalogue.tracers():
        yield f"hooks of {name}", catalogue.hooks(name)


def assured() -> Products:
    """The programs that try what is said of a heap, and which faults have a meaning for it."""
    from recipes_random import random_recipes
    from traces_random import plain_trace

    from heapwright.assure.attack import exploits, faults
    from heapwright.assure.proof import bins, contracts, edges, prove
    from heapwright.recipes.policy import policy
    from heapwright.recipes.zoo import catalogue

    programs = [faults.program(None, 1), faults.program(plain_trace(2, 300), 1)]
    yield "calls around a fault", programs
    recipes = {name: catalogue.load(name) for name in catalogue.names()}
    recipes |= {f"recipe {number}": recipe for number, recipe in enumerate(random_recipes(12, 6))}
    for name, recipe in recipes.items():
        if recipe.memory:
            continue
        values, moving = policy(recipe), recipe.pools[0].moves_objects
        told: list[Any] = [faults.flags(recipe), faults.arena_bytes(recipe, programs[0]), exploits.arena_bytes(recipe)]
        told += [exploits.why_not(technique, recipe) for technique in exploits.TECHNIQUES]
        told += [bins.has_bins(recipe), contracts.has_contracts(recipe), prove.method_for(recipe)]
        if not moving:
            told += [edges.edge_names(recipe, values, compared) for compared in (False, True)]
            narrow = prove.narrow(recipe, 256)
            told += [prove.harness_text(narrow, last, "cbmc", 4, 256, 40) for last in ("calls", "realloc", "misuse")]
        yield f"{name}: tried", told


def foreign() -> Products:
    """The C around somebody else's allocator."""
    from heapwright.heaps.foreign import adapter, source

    for name in adapter.names():
        one = adapter.ready_made(name)
        for front in (False, True):
            text = source.heap_source(one, [Path("a.c")][: not one.library], front, 8)
            yield f"around {name}{' behind another' if front else ''}", [one, source.defines(one, 65536), text]


def boards() -> Products:
    """What an emulated board is given."""
    from recipes_random import random_recipes
    from traces_random import random_trace

    import heapwright as hw
    from heapwright.measure.boards import compilers, cpus, feed, image

    drawn = random_trace(random.Random(2), 200)
    align = np.minimum(drawn.align, 4096)
    trace = hw.Trace.from_columns(op=drawn.op, id=drawn.id, size=drawn.size, align=align, name="drawn")
    for name, cpu in cpus.CPUS.items():
        yield f"{name}", [cpu, compilers.LEVELS]
        for arena in (4096, 1 << 22, 1 << 24):
            given = feed.Input.of(trace, cpu, arena, 64, reference_bytes=arena >> 20, callocs=arena > 4096)
            yield f"{name}, an arena of {arena}", [given, given.header()]
    for number, recipe in enumerate(random_recipes(20, 8)):
        heap = image.Heap.of_recipe(recipe)
        yield (
            f"recipe {number} on a board",
            [[heap.symbol(one) for one in ("malloc", "free")], heap.driver_flags(), heap.reference_bytes],
        )


def imported(folder: Path) -> Products:
    """Traces of every kind of log, and packets of every kind of file."""
    from captures import FRAMES, PACKET, SENSOR, WIFI, pcap, pcapng, radiotap, tcp_packet, tsh_record
    from heap_logs import LOGS, MORE_LOGS

    from heapwright.traces.logs import import_log
    from heapwright.traffic import import_packets

    logs = [(name, log) for name, log in LOGS.items()] + [
        (name, log) for name, logs in MORE_LOGS.items() for log in logs
    ]
    for number, (name, log) in enumerate(logs):
        file = folder / f"{number}.log"
        file.write_bytes(log if isinstance(log, bytes) else log.encode())
        trace = import_log(file, name)
        columns = [trace.op, trace.id, trace.size, trace.align, trace.ts_us, trace.tid, trace.site, trace.sites]
        yield f"log {number}, {name}", [columns, trace.metadata, trace.repairs]
    csv = "time;length;ip;protocol\n0.5;60;40;6\n0.7;1514;1500;17\nx;1\n0.9;;0;0\n"
    packets = {
        "pcap": pcap(FRAMES), "pcapng": pcapng(FRAMES), "wifi": pcap([radiotap(WIFI)], link=127),
        "sensor": pcap([SENSOR], link=195), "tsh": b"".join(tsh_record(at, tcp_packet(at)) for at in range(1, 40)),
        "raw": pcap([PACKET], link=101), "csv": csv.encode(),
    }  # fmt: skip
    for name, data in packets.items():
        file = folder / f"packets.{name}"
        file.write_bytes(data)
        yield f"packets as {name}", import_packets(file)


GROUPS: dict[str, Callable[[], Products]] = {
    "recipes": recipes, "spaces": spaces, "firmware": firmware, "assured": assured, "foreign": foreign,
    "boards": boards,
}  # fmt: skip


def table() -> dict[str, str]:
    """The digests that are kept, by product."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    return {name: kept for kept, _, name in (line.partition("  ") for line in lines)}


def every() -> Products:
    for products in GROUPS.values():
        yield from products()
    with tempfile.TemporaryDirectory() as folder:
        yield from imported(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        made(Path(folder))
        yield from ((command, commanded(Path(folder), command)) for command in COMMANDS)


def main(folder: Path | None) -> None:
    lines = [f"# {versions()}\n"]
    for name, product in every():
        lines.append(f"{digest(product)}  {name}\n")
        if folder:
            folder.mkdir(exist_ok=True)
            (folder / re.sub(r"\W+", "_", name)).write_text(text_of(product), encoding="utf-8")
    if not folder:
        TABLE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
