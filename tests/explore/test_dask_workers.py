"""Explorations on Dask: the same study as threads make, even if processes die on the way."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client

import heapwright as hw
from heapwright._explore import dask_workers
from heapwright._explore.evaluation import EvaluationTask, Evaluator, SearchCandidate, StopRule
from heapwright._explore.host_timing import Turns, time_in_turn
from heapwright._explore.pruning import PartialResult
from heapwright._explore.runner import Progress, Runner
from heapwright._explore.workers import Interrupt
from heapwright._replay.metrics import METRICS
from heapwright._studies.analysis import Analysis
from heapwright._support import engine
from heapwright._support.errors import HeapwrightError
from heapwright._support.version import __version__

EXAMPLES = Path(__file__).parents[2] / "examples"
TRACE = EXAMPLES / "lighttpd_server.parquet"
SPACES = Path()
BIN = Path(sys.executable).parent

KILLS = int(os.environ.get("HEAPWRIGHT_KILLS", "2"))
"""How often workers are killed, and drivers but once; before a release ten times."""

RECIPES = 60
SPACE = """
[[pool]]
kind = "general"
fit = ["first", "best"]
bins = ["none", "exact"]
split = ["always", 64]
coalesce = ["immediate", "deferred"]
"""
"""With the zoo, which has every kind of pool, somewhat more than are tried."""


def rows(path: Path) -> list[tuple[object, ...]]:
    """Every result of a study but for what made it, and when."""
    with Analysis.open(path) as study:
        return study.sql(f"SELECT recipe, name, ranked, trace, role, {', '.join(METRICS)} FROM replays ORDER BY ALL")[1]


def explored(path: Path, **how: Any) -> hw.Study:
    how = {"space": SPACES, "limit": RECIPES, "copies": 1, "complete": True, "stress_test": False, **how}
    return hw.explore([TRACE], path, **how)


@pytest.fixture(scope="module", autouse=True)
def short_trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What dies, dies in the same places of a sixth of the trace, and in the same recipes of a small space."""
    folder = tmp_path_factory.mktemp("given")
    path, space = folder / TRACE.name, folder / "space.toml"
    hw.cut(hw.read_trace(TRACE), first=2000).write(path)
    space.write_text(SPACE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules[__name__], "TRACE", path)
        patched.setattr(sys.modules[__name__], "SPACES", space)
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(explored(tmp_path_factory.mktemp("threads") / "study.duckdb", jobs=2).path)


def free_port() -> int:
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        return int(item.getsockname()[1])


class Cluster:
    """A scheduler and workers: one as docs/many-machines.md starts it, others with none that watches over them."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.address = f"tcp://127.0.0.1:{(port := free_port())}"
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        self.workers = [self.start_worker(at) for at in range(workers)]
        self.wait_for_all()

    def wait_for_all(self) -> None:
        with Client(  # type: ignore[no-untyped-call]
            self.address, timeout=60, set_as_default=False
        ) as client:
            client.wait_for_workers(len(self.workers), timeout=60)

    def revive(self) -> None:
        """Start the workers that an earlier test has killed."""
        self.workers = [item if item.poll() is None else self.start_worker(at) for at, item in enumerate(self.workers)]
        self.wait_for_all()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [BIN / "dask", *words],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def start_worker(self, at: int) -> subprocess.Popen[bytes]:
        watched = [] if at == 0 else ["--no-nanny"]
        return self.start("worker", self.address, "--nthreads", "1", "--no-dashboard", *watched)

    def close(self) -> None:
        for item in (*self.workers, self.scheduler):
            if item.poll() is None:
                kill(item)

    def kill_a_worker(self, which: int) -> None:
        """By turns the process that replays, which the one that watches over it starts again, or all."""
        at = which % 2
        if which % 4 < 2 and (children := psutil.Process(self.workers[at].pid).children(recursive=True)):
            for child in children:
                child.kill()
        else:
            kill(self.workers[at])
            self.workers[at] = self.start_worker(at)


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """One for all, as starting its processes takes longer than most of their work here."""
    started.revive()
    return started


def test_processes_of_this_machine_make_the_study_that_threads_make(tmp_path: Path) -> None:
    few = {"limit": 3, "jobs": 2, "stress_test": True}
    result = explored(tmp_path / "study.duckdb", dask="local", **few)
    assert rows(result.path) == rows(explored(tmp_path / "threads.duckdb", **few).path)


def test_heaps_are_timed_in_turn_on_one_worker(undisturbed: Path, cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "study.duckdb"
    shutil.copyfile(undisturbed, path)
    trace, output, interrupt = hw.read_trace(TRACE), list[Progress](), Interrupt()

    def timed() -> list[tuple[object, ...]]:
        with dask_workers.cluster(cluster.address, 2) as workers, Analysis.open(path, write=True) as study:
            recipes = {item.id: study.recipe(item.id) for item in study.front()[:2]}
            assert workers.threads_of_each(1) == 1
            time_in_turn(Runner(study, workers, interrupt, output.append), Turns(recipes, [trace], 1, 0))
        with Analysis.open(path) as study:
            return study.sql("SELECT recipe, role FROM replays WHERE ns_per_event > 0 AND machine <> '' ORDER BY ALL")[
                1
            ]

    interrupt.seen = True
    assert timed() == []
    interrupt.seen = False
    result = timed()
    assert [role for _, role in result] == ["copy", "explored"] * 2
    assert {(item.what, item.total) for item in output} == {("timing", 2 * (1 + 1 + 1))}


def test_a_front_that_gives_recipes_up_is_as_exact_as_with_threads(cluster: Cluster, tmp_path: Path) -> None:
    whole = explored(tmp_path / "whole.duckdb", jobs=2, copies=0)
    exact = explored(tmp_path / "exact.duckdb", complete=False, tolerance=0, copies=0, dask=cluster.address)
    assert exact.given_up > 0
    assert [item.id for item in exact.front()] == [item.id for item in whole.front()]
    near = explored(tmp_path / "near.duckdb", complete=False, tolerance=0.2, copies=0, dask=cluster.address)
    assert near.given_up > 0
    best, close = (
        [[float(item.metrics[key] or 0) for key in whole.objectives] for item in output.front()]
        for output in (whole, near)
    )
    for item in best:
        assert any(all(b <= 1.2 * a for a, b in zip(item, other, strict=True)) for other in close)


def test_loads_of_one_device_come_to_the_same_front_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    half = hw.cut(hw.read_trace(TRACE), first=1000)
    how: dict[str, Any] = {"space": SPACES, "limit": RECIPES, "copies": 0, "stress_test": False, "same_device": True}
    whole = hw.explore([TRACE, half], tmp_path / "whole.duckdb", complete=True, jobs=2, **how)
    exact = hw.explore([TRACE, half], tmp_path / "exact.duckdb", tolerance=0, dask=cluster.address, **how)
    assert exact.given_up
    assert [(item.id, item.metrics) for item in exact.front()] == [(item.id, item.metrics) for item in whole.front()]


def test_what_is_wrong_with_a_cluster_is_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = engine.build()

    def fails(**how: object) -> str:
        with pytest.raises(hw.HeapwrightError) as caught:
            explored(tmp_path / "never.duckdb", **how)
        assert not (tmp_path / "never.duckdb").exists()
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert fails(dask="nonsense://nowhere").startswith("nonsense://nowhere: no Dask scheduler answers")
    assert fails(dask=cluster.address, jobs=2).startswith(f"jobs: {cluster.address} has as many as its workers")
    with monkeypatch.context() as patched:
        patched.setattr(dask_workers, "_CONNECT_SECONDS", 0.5)
        nobody = f"tcp://127.0.0.1:{free_port()}"
        assert fails(dask=nobody).startswith(f"{nobody}: no Dask scheduler answers")
    with monkeypatch.context() as patched:
        patched.setattr(dask_workers, "__version__", "99.0")
        assert "the Dask worker has heapwright" in fails(dask=cluster.address)
    with monkeypatch.context() as patched:  # the same version with other sources
        patched.setattr(dask_workers, "build", lambda: f"{__version__}, engine 0, Python 0")
        assert f"the Dask worker has heapwright {build}; install {__version__}, engine 0" in fails(dask=cluster.address)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "distributed", None)
        assert fails(dask=cluster.address).endswith("install heapwright[dask]")


def test_a_worker_that_goes_while_builds_are_compared_is_not_waited_for() -> None:
    output: dict[str, object] = {"gone": OSError("Stream is closed"), "here": engine.build()}

    class Asked:
        def wait_for_workers(self, *_: object, **__: object) -> None:
            pass

        def get_versions(self, **_: object) -> dict[str, object]:
            return {"workers": {item: {"packages": {"heapwright": __version__}} for item in output}}

        def run(self, *_: object, on_error: str) -> dict[str, object]:
            assert on_error == "return"
            return output

    dask_workers._require_workers(Asked(), "tcp://nowhere")
    output["other"] = ValueError("something else")
    with pytest.raises(ValueError, match="something else"):
        dask_workers._require_workers(Asked(), "tcp://nowhere")


def test_dask_is_asked_again_where_its_thread_was_late(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    late = 0

    def connect(*args: Any, **how: Any) -> Client:
        nonlocal late
        late += 1
        assert late == 3
        return Client(*args, **how)  # type: ignore[no-untyped-call]

    monkeypatch.setattr("distributed.Client", connect)
    with dask_workers.cluster(cluster.address, 2):
        pass
    with pytest.raises(HeapwrightError, match="no Dask scheduler answers"), dask_workers.cluster(cluster.address, 2):
        pass


def test_what_a_budget_leaves_is_exact(
    undisturbed: Path, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "BATCH_SECONDS", 0.05)
    study = tmp_path / "study.duckdb"
    for seconds in (0.2, 3.0, 15.0, 60.0):
        result = explored(study, dask=cluster.address, complete=False, budget=seconds, copies=0)
        assert set(rows(study)) <= set(rows(undisturbed))
        if result.front():  # the busier the machine, the longer it takes
            break
    assert result.front()
    explored(study, dask=cluster.address)
    assert rows(study) == rows(undisturbed)


def test_workers_that_die_cost_their_batches_only(
    undisturbed: Path, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "BATCH_SECONDS", 0.2)
    killed: list[int] = []

    def kill_some(progress: Progress) -> None:
        share = progress.finished / progress.total
        if progress.what == "exploring" and len(killed) < KILLS and share > len(killed) / (KILLS + 1):
            cluster.kill_a_worker(len(killed))
            killed.append(progress.finished)

    result = explored(tmp_path / "study.duckdb", dask=cluster.address, progress=kill_some)
    assert len(killed) == KILLS
    assert rows(result.path) == rows(undisturbed)


DRIVER = """
import sys
import heapwright as hw
from heapwright._explore import dask_workers, runner

runner._BATCH_SECONDS = dask_workers.BATCH_SECONDS = 0.05
trace, study, space, recipes, address = sys.argv[1:]

def report(progress):
    print(progress.finished, flush=True)

few = {"space": space, "limit": int(recipes), "copies": 1, "stress_test": False}
hw.explore(trace, study, complete=True, dask=address, progress=report, **few)
"""


def test_a_driver_that_dies_goes_on_from_what_is_stored(undisturbed: Path, cluster: Cluster, tmp_path: Path) -> None:
    study = tmp_path / "study.duckdb"
    command = [sys.executable, "-c", DRIVER, str(TRACE), str(study), str(SPACES), str(RECIPES), cluster.address]
    stored = [0]
    for turn in range(KILLS - 1):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as item:
            assert item.stdout and item.stderr
            share = len(rows(undisturbed)) * (turn + 1) // (KILLS + 1)
            assert any(int(line) >= share for line in item.stdout), item.stderr.read()
            kill(item)
        with Analysis.open(study) as result:
            stored.append(len(result.finished()))
    assert stored[-1] > 0 and stored == sorted(stored)
    assert explored(study, dask=cluster.address).path == study
    assert rows(study) == rows(undisturbed)


def test_an_exploration_that_no_worker_is_left_for_ends_in_one_line(
    undisturbed: Path, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "BATCH_SECONDS", 0.05)
    monkeypatch.setattr(dask_workers, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(dask_workers, "_ALONE_SECONDS", 0.5)

    def kill_all(progress: Progress) -> None:
        if progress.finished > RECIPES // 4:
            for worker in cluster.workers:
                if worker.poll() is None:
                    kill(worker)

    study = tmp_path / "study.duckdb"
    with pytest.raises(hw.HeapwrightError, match=r"no Dask worker is left; what was finished is stored"):
        explored(study, dask=cluster.address, progress=kill_all)
    with Analysis.open(study) as stored:
        assert stored.finished()
    monkeypatch.setattr(dask_workers, "_WORKERS_SECONDS", 0.5)
    with pytest.raises(hw.HeapwrightError, match=r"has no workers; start some with: dask worker tcp://[^\n]*$"):
        explored(tmp_path / "never.duckdb", dask=cluster.address)
    assert not (tmp_path / "never.duckdb").exists()
    assert rows(explored(study).path) == rows(undisturbed)


def test_a_scheduler_that_dies_ends_the_exploration_in_one_line(
    undisturbed: Path, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "_CONNECT_SECONDS", 5.0)
    monkeypatch.setattr(dask_workers, "BATCH_SECONDS", 0.05)

    def kill_it(progress: Progress) -> None:
        if progress.finished > RECIPES // 4 and cluster.scheduler.poll() is None:
            kill(cluster.scheduler)

    study = tmp_path / "study.duckdb"
    with pytest.raises(hw.HeapwrightError, match=r"the Dask scheduler is gone; what was finished is stored"):
        explored(study, dask=cluster.address, progress=kill_it)
    assert rows(explored(study).path) == rows(undisturbed)


DEADLY = """
import os, signal
from heapwright._replay.replay import Replayed, replay

def deadly(trace, recipe, watch):
    if recipe.name == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return Replayed(replay(trace, recipe, watch=watch))
"""


def test_a_recipe_that_workers_die_of_is_named_and_the_others_of_its_batch_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    deadly = importlib.import_module("deadly")
    recipes = [hw.zoo("tlsf"), hw.zoo("lwip-mem")]
    recipes.insert(1, recipes[0].model_copy(update={"name": "deadly"}))
    tasks = [EvaluationTask(SearchCandidate(recipe.name, recipe, None), PartialResult((), 1)) for recipe in recipes]
    evaluator = Evaluator([hw.read_trace(TRACE)], deadly.deadly)
    tried: set[str] = set()
    cluster = Cluster(tmp_path, workers=1)
    try:
        with (
            dask_workers.cluster(cluster.address, 1) as workers,
            pytest.raises(hw.HeapwrightError, match=r"^deadly: Dask workers die of replaying it"),
        ):
            monkeypatch.setattr(type(workers), "jobs", 1)
            monkeypatch.setattr(dask_workers, "_AHEAD", 1)
            for outcome in workers.evaluations(tasks, evaluator, StopRule(Interrupt()), lambda task: 0.0):
                tried |= {outcome[0].candidate.id} if outcome else set()
    finally:
        cluster.close()
    assert tried >= {"tlsf"}
