"""What is reported of calls on a board or on this machine, from given counts: compilers and emulators are simulated."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import heapwright as hw
from heapwright._measure.boards import compilers, measure, objectives, qemu_backend, unicorn_backend
from heapwright._measure.boards.cpus import cpu
from heapwright._measure.boards.feed import COUNTS, BoardRun
from heapwright._measure.boards.image import BoardHeap, Size
from heapwright._measure.host import timing
from heapwright._measure.host.calls import STDIN
from heapwright._native import ffi
from heapwright._recipes.recipe import Recipe
from heapwright._replay.replay import replay
from heapwright._support.errors import HeapwrightError
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC, FREE, MALLOC, REALLOC

OPS = [MALLOC, MALLOC, CALLOC, MALLOC, REALLOC, FREE, FREE]


def trace_of_all() -> Trace:
    """Two mallocs, a calloc, an aligned request, a realloc and two frees, in two phases."""
    return Trace.from_columns(
        op=OPS, id=[1, 2, 3, 4, 1, 2, 3], size=[24, 40, 16, 64, 99, 0, 0], align=[0, 0, 0, 32, 0, 0, 0],
        phase=[0, 0, 0, 1, 1, 1, 1], phases=("start", "work"), name="all",
    )  # fmt: skip


def run_of(*instructions: int, refused: tuple[int, ...] = (), **others: Any) -> BoardRun:
    """A board whose calls took `instructions` instructions, half as many loads, and a tenth of them stores."""
    counted = np.array(instructions, np.int64)
    shares = dict(zip(COUNTS, (1, 0.5, 0.1, 0.25, 0.05, 2, 1, 1.5, 2), strict=True))
    counts: dict[str, Any] = {key: (counted * share).astype(np.int64) for key, share in shares.items()}
    given: dict[str, Any] = {
        "performed": np.arange(len(counted)), "refused": np.isin(np.arange(len(counted)), refused), "counts": counts,
        "stubs": (1, 2, 3), "stub_value": 0x5A, "started": True, "taken": 4096, "arena": np.zeros(0, np.uint8),
    }  # fmt: skip
    return BoardRun(**{**given, **others})


INSTRUCTIONS = (100, 300, 80, 200, 500, 40, 60)


def test_calls_are_told_by_their_kind() -> None:
    calls = measure.calls_by_kind(run_of(*INSTRUCTIONS, refused=(1,)), trace_of_all())
    assert {kind: item["count"] for kind, item in calls.items()} == {"malloc": 3, "aligned": 1, "realloc": 1, "free": 2}
    malloc = calls["malloc"]  # a calloc counts as the malloc that it begins with
    assert malloc == {
        "count": 3, "refused": 1, "instructions_mean": 160.0, "instructions_median": 100, "instructions_p99": 300,
        "instructions_p999": 300, "instructions_max": 300, "instructions_max_call": 1, "accesses_mean": 96.0,
        "accesses_max": 180, "loads_mean": 80.0, "stores_mean": 16.0, "arena_accesses_mean": 48.0,
        "arena_accesses_max": 90, "arena_loads_mean": 40.0, "arena_stores_mean": 8.0, "stack_bytes_max": 600,
        "cycles": {"mean": {"minimum": 160.0, "nominal": 240.0, "maximum": 320.0},
                   "max": {"minimum": 300, "nominal": 450, "maximum": 600}},
        "instructions_histogram": [[80, 1], [100, 1], [300, 1]],
    }  # fmt: skip
    assert calls["free"]["instructions_max_call"] == 6
    assert calls["aligned"]["instructions_mean"] == 200.0


def test_real_callocs_and_phases_are_told_apart() -> None:
    trace, cleared = trace_of_all(), run_of(100, 300, 180, 200, 500, 40, 60)
    calls = measure.calls_by_kind(run_of(*INSTRUCTIONS), trace, cleared)
    assert (calls["calloc"]["count"], calls["calloc"]["instructions_mean"]) == (1, 180.0)
    assert calls["malloc"]["instructions_mean"] == 160.0
    late = measure.calls_by_kind(run_of(*INSTRUCTIONS), trace, among=trace.phase == 1)
    assert {kind: item["count"] for kind, item in late.items()} == {"malloc": 0, "aligned": 1, "realloc": 1, "free": 2}
    assert late["malloc"]["instructions_mean"] is None and late["malloc"]["instructions_histogram"] is None


def test_what_an_emulator_cannot_count_is_none() -> None:
    run = run_of(*INSTRUCTIONS)
    run.counts.update(dict.fromkeys(COUNTS[1:]))
    output = measure.calls_by_kind(run, trace_of_all())["malloc"]
    assert (output["instructions_mean"], output["accesses_mean"], output["loads_mean"], output["cycles"]) == (
        160,
        None,
        None,
        None,
    )


class Workshop:
    """Builds nothing: an image of no code."""

    def __init__(self, heap: BoardHeap, compiler: Any) -> None:
        self.heap, self.compiler = heap, compiler

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to clean."""

    def code_bytes(self, level: str) -> dict[str, int]:
        return {"total": 700, "data": 8, "bss": 16, "level": len(level)}

    def image(self, level: str, layout: Any = None) -> Any:
        return SimpleNamespace(symbols={}, compiler=self.compiler)

    def size_of(self, entries: tuple[str, ...], level: str) -> Size:
        return Size(100 * len(entries), 8, len(level))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """A board whose calls take INSTRUCTIONS, and the requests to it."""
    results: list[dict[str, Any]] = []

    def run(image: Any, given: Any, *, memory: bool = True) -> BoardRun:
        results.append({"memory": memory, "arena": given.layout.arena_bytes, "used": given.arena_used})
        return run_of(*INSTRUCTIONS, arena=np.zeros(given.arena_used, np.uint8))

    compiler = SimpleNamespace(version="gcc 12", kind="gcc", cpu=cpu("cortex-m3"))
    monkeypatch.setattr(measure, "find_compiler", lambda cpu, kind: compiler)
    monkeypatch.setattr(measure, "Workshop", Workshop)
    monkeypatch.setattr(unicorn_backend, "available", lambda target: True)
    monkeypatch.setattr(unicorn_backend, "version", lambda: "unicorn 2")
    monkeypatch.setattr(unicorn_backend, "run", run)
    monkeypatch.setattr(qemu_backend, "available", lambda target: False)
    yield results


def test_a_measurement_tells_prediction_and_setting(asked: list[dict[str, Any]]) -> None:
    trace, recipe = trace_of_all(), hw.zoo("tlsf")
    output = measure.measure(recipe, trace, arena=8192)
    host = replay(trace, recipe, arena=8192)
    assert [item["memory"] for item in asked] == [True, True]  # once as mallocs, once with real callocs
    assert {item["arena"] for item in asked} == {8192} and asked[0]["used"] > 0
    kept = {
        "heap": "tlsf",
        "trace": "all",
        "cpu": "cortex-m3",
        "runs_on": "cortex-m3",
        "note": None,
        "compiler": "gcc 12",
        "backend": "unicorn 2",
        "level": "Os",
        "platform": None,
        "lock": None,
        "config": None,
        "arena_bytes": 8192,
        "footprint_bytes": host["footprint_bytes"],
        "failed": 0,
    }
    assert {key: output[key] for key in kept} == kept
    assert output["code_bytes"]["total"] == 700 and set(output["code_bytes"]) >= {"O0", "O2", "O3"}
    assert output["calls"]["calloc"]["count"] == 1
    prediction = output["prediction"]
    assert not prediction["metadata_equal"] and prediction["metadata_bytes"] > 0
    assert (prediction["counted_reads"], prediction["counted_writes"]) == (host["reads"], host["writes"])
    loads, stores = sum(int(item * 0.25) for item in INSTRUCTIONS), sum(int(item * 0.05) for item in INSTRUCTIONS)
    assert (prediction["measured_loads"], prediction["measured_stores"]) == (loads, stores)
    assert prediction["ratio"] == pytest.approx((loads + stores) / float(host["accesses"] or 1))


def test_the_arena_is_the_boards_memory_or_what_the_trace_needs(asked: list[dict[str, Any]]) -> None:
    session = measure.Session()
    assert session.instructions(hw.zoo("tlsf"), [trace_of_all()]) == [sum(INSTRUCTIONS)]
    assert asked[-1] == {"memory": False, "arena": cpu("cortex-m3").memory.arena_bytes, "used": 0}
    large = Trace.from_columns(
        op=[0, 0, 0, 0, 3, 3, 3], id=[1, 2, 3, 4, 1, 2, 3], size=[6_000_000, *[8] * 6], name="large"
    )
    session.instructions(hw.zoo("tlsf"), [large])
    assert asked[-1]["arena"] == (int(replay(large, hw.zoo("tlsf"))["footprint_bytes"] or 0) // 65536 + 2) * 65536
    session.instructions(BoardHeap.of_library("newlib-nano"), [large])
    assert asked[-1]["arena"] == (2 * large.lower_bound(8) // 65536 + 2) * 65536, "its footprint is not known"
    narrow = Recipe.from_dict({"link_bytes": 2, "pool": [{"kind": "general"}]})
    session.instructions(narrow, [trace_of_all()])
    assert asked[-1]["arena"] == narrow.reach
    assert session.setting == "cortex-m3, gcc 12 -Os" and session.emulator == "unicorn 2"
    assert session.sizes(hw.zoo("tlsf"), ["malloc", "free"], ["Os", "O2"]) == {
        "Os": Size(200, 8, 2),
        "O2": Size(200, 8, 2),
    }


def test_only_a_trace_with_callocs_is_replayed_with_them_as_such(asked: list[dict[str, Any]]) -> None:
    plain = Trace.from_columns(
        op=[MALLOC if item == CALLOC else item for item in OPS],
        id=[1, 2, 3, 4, 1, 2, 3],
        size=[24, 40, 16, 64, 99, 0, 0],
    )
    for trace, runs in ((plain, 1), (trace_of_all(), 2)):
        asked.clear()
        output = measure.Session().measure(hw.zoo("tlsf"), [trace], ["Os"])[0]
        assert (len(asked), "calloc" in output["calls"]) == (runs, runs == 2)


def test_callocs_of_a_file_without_any_are_not_replayed_as_such(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "heap.c").touch()
    output = measure.Session().measure(BoardHeap.of_file(tmp_path / "heap.c"), [trace_of_all()], ["Os"])[0]
    assert len(asked) == 1 and "calloc" not in output["calls"]


def test_a_kernel_tells_its_lock_and_whose_config_it_has(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "KernelWorkshop", lambda heap, compiler, kernel: Workshop(heap, compiler))
    monkeypatch.setattr(qemu_backend, "available", lambda target: True)
    monkeypatch.setattr(qemu_backend, "version", lambda program: "qemu 7")
    monkeypatch.setattr(qemu_backend, "run", unicorn_backend.run)
    for config, output in ((None, None), (Path("here/FreeRTOSConfig.h"), "here/FreeRTOSConfig.h")):
        kernel = SimpleNamespace(port=lambda _: Path(), lock="scheduler", config=config)
        session = measure.Session(kernel=kernel)  # type: ignore[arg-type]
        result = session.measure(hw.zoo("tlsf"), [trace_of_all()], ["Os"])[0]
        assert (result["platform"], result["lock"], result["config"]) == ("freertos", "scheduler", output)


def test_a_kernel_is_asked_for_the_same_as_the_heap_alone_but_for_aligned_requests_and_reallocs() -> None:
    def asks(align: int, second: int) -> bool:
        return measure._as_on_the_host(
            Trace.from_columns(op=[MALLOC, second], id=[1, 1], size=[8, 16], align=[align, 0])
        )

    assert asks(0, FREE) and asks(1, FREE)
    assert not asks(2, FREE) and not asks(0, REALLOC)


def test_a_c_library_is_told_by_what_it_took(asked: list[dict[str, Any]]) -> None:
    output = measure.Session().measure(BoardHeap.of_library("newlib-nano"), [trace_of_all()], ["Os"])[0]
    assert (output["heap"], output["footprint_bytes"], output["prediction"]) == ("lib:newlib-nano", 4096 + 8 + 16, None)


def test_a_heap_that_does_not_start_is_an_error(asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unicorn_backend, "run", lambda image, given, memory=True: run_of(started=False))
    with pytest.raises(HeapwrightError, match="tlsf: an arena of 4,096 bytes cannot hold its control data"):
        measure.measure(hw.zoo("tlsf"), trace_of_all(), arena=4096)


def test_emulators_that_are_missing_are_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unicorn_backend, "available", lambda target: False)
    monkeypatch.setattr(qemu_backend, "available", lambda target: False)
    install = {
        "unicorn": "unicorn is missing; pip install",
        "qemu": "qemu-system-arm is missing; apt-get",
        None: r"no emulator for cortex-m3; pip install 'heapwright\[target\]' \(unicorn\), or apt-get",
    }
    for name, message in install.items():
        with pytest.raises(HeapwrightError, match=message):
            measure.find_backend(cpu("cortex-m3"), name)
    monkeypatch.setattr(qemu_backend, "available", lambda target: True)
    assert measure.find_backend(cpu("cortex-m3")) == "qemu"
    monkeypatch.setattr(unicorn_backend, "available", lambda target: True)
    assert measure.find_backend(cpu("cortex-m3")) == "unicorn"


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2)", 0, "qemu 7.2.22"),
        ("", 127, "qemu"),
        ("something else", 0, "qemu"),
    ],
)
def test_an_emulator_that_tells_no_version_has_its_name(
    said: str, code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], *, check: bool, **_: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.CompletedProcess(command, code, said, "")
        if check:
            done.check_returncode()
        return done

    monkeypatch.setattr(subprocess, "run", run)
    assert qemu_backend.version.__wrapped__("qemu-system-arm") == told


def test_a_counter_of_qemu_has_24_bits() -> None:
    ticks = np.array([0xFF000064, 0x00FFFFFF], np.uint32)
    assert qemu_backend._instructions(ticks, cpu("rv32imac")).tolist() == [100 - 3, 0xFFFFFF - 3]


def test_a_hook_that_unicorn_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unicorn", SimpleNamespace())
    monkeypatch.setattr(unicorn_backend, "version", lambda: "unicorn 2")
    answers = {"uc_hook_add": lambda *_: 7}
    monkeypatch.setattr(unicorn_backend, "_library", lambda _: SimpleNamespace(**answers))
    asking: Any = SimpleNamespace(core=SimpleNamespace(_uch=None), counter=ffi.new("struct hw_counter *"), memory=True)
    with pytest.raises(HeapwrightError, match=r"unicorn 2: cannot set a hook \(error 7\); "):
        unicorn_backend._Machine._hook(asking)
    answers["uc_hook_add"] = lambda *_: 0
    unicorn_backend._Machine._hook(asking)


def test_metrics_of_a_study_are_of_what_was_measured(asked: list[dict[str, Any]]) -> None:
    output = measure.measure(hw.zoo("tlsf"), trace_of_all(), arena=8192)
    result = objectives.metrics_of(output)
    assert result == {
        "instructions_malloc_max": 300, "instructions_calloc_max": 80, "instructions_realloc_max": 500,
        "instructions_free_max": 60, "instructions_malloc_mean": 160.0, "instructions_free_mean": 50.0,
        "instructions_pair_mean": 210.0, "code_bytes": 700,
    }  # fmt: skip
    output["calls"] = {
        key: {**item, "instructions_mean": None} for key, item in output["calls"].items() if key in ("malloc", "free")
    }
    assert objectives.metrics_of(output)["instructions_pair_mean"] is None
    assert objectives.metrics_of(output)["instructions_realloc_max"] is None


def test_compilers_are_told_with_their_versions_and_first_complaint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compilers._version.cache_clear()
    output = {"--version": "arm-none-eabi-gcc (GNU) 12.2\nmore", "version": "0.13.0\n"}

    def tell(words: list[str], text: bool, **_: Any) -> subprocess.CompletedProcess[Any]:
        said = output.get(words[-1], words[-1].partition("=")[2])
        return subprocess.CompletedProcess(words, 0, said if text else said.encode(), "")

    monkeypatch.setattr(subprocess, "run", tell)
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/bin/{name}")
    target = cpu("cortex-m3")
    gcc = compilers.find_compiler(target)
    output["-print-file-name=nano.specs"] = "/lib/nano.specs\n"
    assert gcc.has_file("nano.specs") and not gcc.has_file("other.specs"), (
        "what is not found is reported as it was requested"
    )
    assert (gcc.kind, gcc.command, gcc.version) == ("gcc", ("/bin/arm-none-eabi-gcc",), "arm-none-eabi-gcc (GNU) 12.2")
    output["--version"] = "clang version 18 (https://x)"
    (tmp_path / "zig").touch()
    package = ModuleSpec("ziglang", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    zig = compilers.find_compiler(target, "zig")
    assert (zig.command, zig.version) == ((str(tmp_path / "zig"), "cc"), "zig 0.13.0 (clang version 18)")
    asked: list[list[str]] = []
    answer = subprocess.CompletedProcess[str]([], 0, "", "")

    def run(words: list[str], folder: Path, text: bool) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return answer

    monkeypatch.setattr(compilers, "run_tool", run)
    gcc.compile(Path("a.c"), tmp_path / "a.o", ["-Os"])
    assert asked[-1][1:3] == ["-mcpu=cortex-m3", "-mthumb"]
    assert asked[-1][-6:] == ["-w", "-Os", "-c", "a.c", "-o", str(tmp_path / "a.o")]
    gcc.link([Path("a.o"), Path("b.o")], tmp_path / "a.elf", ["-Tx.ld"], library=False)
    assert "-nolibc" in asked[-1] and asked[-1][-5:] == ["-Tx.ld", "a.o", "b.o", "-o", str(tmp_path / "a.elf")]
    zig.link([Path("a.o")], tmp_path / "a.elf", [], library=False)
    assert "-nolibc" not in asked[-1] and "-fno-sanitize=undefined" in asked[-1]
    for errors, what in (("In file\n a.c:3: error: no x \nb", "a.c:3: error: no x"), ("odd", "odd"), ("", "status 1")):
        answer.returncode, answer.stderr = 1, errors
        with pytest.raises(HeapwrightError) as raised:
            gcc.compile(Path("a.c"), tmp_path / "a.o", [])
        assert str(raised.value) == f"a.c: {gcc.version} cannot build it for cortex-m3: {what}"
    compilers._version.cache_clear()


def test_compilers_that_are_missing_are_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    install = {
        "gcc": "arm-none-eabi-gcc is missing; apt-get install",
        "zig": "zig is missing; pip install",
        None: r"no compiler for cortex-m3; pip install 'heapwright\[target\]' \(zig\), or apt-get",
    }
    for kind, message in install.items():
        with pytest.raises(HeapwrightError, match=message):
            compilers.find_compiler(cpu("cortex-m3"), kind)


# ---- this machine --------------------------------------------------------------------------------------------------


def test_times_are_the_median_of_interleaved_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    compiled: list[list[str]] = []

    def run(words: list[str], folder: Path | None = None, **options: Any) -> subprocess.CompletedProcess[Any]:
        if "-o" in words:
            compiled.append([Path(word).name for word in words])
            Path(words[-1]).touch()
            return subprocess.CompletedProcess(words, 0, "", "")
        asked.append(
            [Path(words[0]).name.rpartition("-")[0], *words[1:3], (options["env"] or {}).get("LD_PRELOAD", "")]
        )
        return subprocess.CompletedProcess(words, 0, b"700\n1400\n2100\n" if len(asked) < 3 else b"70000\n", b"")

    monkeypatch.setattr(timing, "run_tool", run)
    trace = trace_of_all()
    with timing.Bench("cc", ("-O2",)) as bench:
        programs = {"tlsf": bench.generated(hw.zoo("tlsf")), "libc": bench.library("other.so")}
        assert programs["tlsf"] == bench.generated(hw.zoo("tlsf"))  # compiled once
        result = bench.measure(programs, trace, rounds=2, passes=3)
    assert len(compiled) == 2 and {"-DDRIVE_GENERATED", "timed_heap.c"} < set(compiled[0])
    assert asked == [["driver", STDIN, "3", ""], ["library-driver", STDIN, "3", "other.so"]] * 2
    assert result == {"tlsf": (1400 + 2100) / 2 / len(trace), "libc": (1400 + 2100) / 2 / len(trace)}


def test_a_program_that_fails_while_it_is_timed_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"good": (0, b"7\n", b""), "bad": (3, b"", b""), "worse": (1, b"", b" out of memory ")}

    def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        if words[0] == "slow":
            raise subprocess.TimeoutExpired(words, 1)
        return subprocess.CompletedProcess(words, *answers[words[0]])

    class Named(SimpleNamespace):
        def timed_program(self, bench: timing.Bench, trace: Trace, arena: int | None = None) -> timing.TimedProgram:
            return timing.TimedProgram(Path(self.name), (), None, 2.5)

    monkeypatch.setattr(timing, "run_tool", run)
    monkeypatch.setattr(timing, "find_compiler", lambda what: "cc")
    trace = trace_of_all()
    result = timing.time_heaps(trace, {name: Named(name=name) for name in (*answers, "slow")})
    assert result["good"] == 1.0
    assert str(result["bad"]) == "bad: failed while it was timed: exit code 3"
    assert str(result["worse"]) == "worse: failed while it was timed: out of memory"
    assert str(result["slow"]) == "slow: gave no answer within 2.5 s, while it was timed"
