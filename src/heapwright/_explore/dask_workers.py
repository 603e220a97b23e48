"""Worker pool on a Dask cluster, whose workers run the same code as threads.

The traces go to a worker once, and what it computes from them stays there. Tasks go in batches that take about a
second, two for each thread of a worker, so that it never waits for the driver; a batch takes along the front bound of
the moment it leaves. Later bounds only prune more, so an old one prunes nothing that the newest would not: fronts stay
as exact as they are with threads.

The scheduler sees nothing but bytes. Anyone who can connect to it can run any code on its workers: Dask unpickles what
it receives, so use it on trusted networks only.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
import queue
import signal
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from math import ceil, inf
from typing import Any, TypeVar
from uuid import uuid4

from heapwright._explore.evaluation import EvaluationOutcome, EvaluationTask, Evaluator, StopRule
from heapwright._explore.pruning import Incumbents
from heapwright._explore.workers import POLL_SECONDS, GoOn, Outcomes, Work
from heapwright._support.engine import build
from heapwright._support.errors import HeapwrightError
from heapwright._support.version import __version__

_Result = TypeVar("_Result")

LOCAL = "local"
"""In place of an address: a cluster of processes on this machine, for as long as the exploration takes."""

BATCH_SECONDS = 1.5
"""Seconds that a batch takes: many times Dask's overhead, and little work to lose when a worker dies."""

_AHEAD = 2
"""Batches in flight for each worker thread: one being evaluated, one queued."""

_CONNECT_SECONDS = 10.0
_TRIES = 3
_WORKERS_SECONDS = 30.0
"""Seconds within which the first worker has to connect."""

_ALONE_SECONDS = 60.0
"""Seconds that an exploration waits for a new worker when none is left."""

_LOOK_SECONDS = 2.0


@contextmanager
def cluster(address: str, jobs: int) -> Iterator[DaskPool]:
    """The workers of the scheduler at `address`; for `LOCAL`, `jobs` processes that end with the context.

    Raises `HeapwrightError` if Dask is missing, no scheduler answers, it has no workers, or they have another build of
    heapwright.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise HeapwrightError("explore: dask.distributed is missing; install heapwright[dask]") from None
    known = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
    with _quiet(), dask.config.set(known), ExitStack() as opened:
        make_cluster: Any = LocalCluster
        connect: Any = Client
        said = ""
        try:
            if address == LOCAL:
                with _deaf_children():
                    local = _begun(
                        lambda: make_cluster(n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0")
                    )
                opened.callback(local.close)
            where = local if address == LOCAL else address
            client = _begun(lambda: connect(where, timeout=_CONNECT_SECONDS, set_as_default=False))
            opened.callback(client.close)
        except (OSError, ValueError, RuntimeError, ImportError, AssertionError) as error:
            said = " ".join(str(error).split()) or type(error).__name__
        if said:
            # a failed client that is collected while another one connects would wait for that one forever
            gc.collect()
            raise HeapwrightError(f"{address}: no Dask scheduler answers ({said}); dask scheduler starts one")
        _require_workers(client, address)
        yield DaskPool(client, address)


def _begun(begin: Callable[[], Any]) -> Any:
    """The result of `begin`, which is called again, `_TRIES` times in all, if an assertion of Dask fails.

    Dask asserts that its thread has started after ten seconds; on a machine that was suspended it may not have.
    """
    for _ in range(_TRIES - 1):
        with suppress(AssertionError):
            return begin()
        gc.collect()
    return begin()


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Context in which new processes ignore Ctrl-C, which a terminal sends to all of them: the driver ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Context in which Dask's loggers are silent: an error reports any failure in one line."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _require_workers(client: Any, address: str) -> None:
    """Raise HeapwrightError unless there are workers, and all have this build."""
    try:
        client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
    except (TimeoutError, asyncio.TimeoutError):
        raise HeapwrightError(
            f"{address}: the Dask scheduler has no workers; start some with: dask worker {address}"
        ) from None
    info = client.get_versions(packages=["heapwright"])
    for worker, versions in info["workers"].items():
        _require_version(versions["packages"].get("heapwright"), worker)
    for worker, result in client.run(_built, on_error="return").items():
        if isinstance(result, str):
            _require_build(result, build(), worker)
        elif not isinstance(result, OSError):  # an OSError comes from a worker that has left meanwhile
            raise result


def _require_version(result: str | None, worker: str) -> None:
    if result != __version__:
        has = f"heapwright {result}" if result else "no heapwright"
        raise HeapwrightError(f"{worker}: the Dask worker has {has}; install {__version__} there, as it is here")


def _built() -> str:
    """The build of the process that calls it."""
    return build()


def _require_build(result: str, asked: str, worker: str) -> None:
    if result != asked:
        raise HeapwrightError(
            f"{worker}: the Dask worker has heapwright {result}; install {asked} there, as it is here"
        )


class DaskPool:
    """Pool of the workers of a cluster; see `heapwright._explore.workers.WorkerPool`."""

    def __init__(self, client: Any, address: str) -> None:
        """Take a connected client."""
        self._client, self._address = client, address
        self._sent: tuple[Evaluator, Any] | None = None
        self._threads, self._looked, self._alone_since = 0, -inf, inf
        self._look()

    @property
    def jobs(self) -> int:
        """Threads of all workers, as last counted."""
        return max(self._threads, 1)

    def threads_of_each(self, tasks: int) -> int:
        """Always one: a task runs on one thread of a worker, and idle threads may be on other machines."""
        return 1

    def evaluations(
        self,
        tasks: Sequence[EvaluationTask],
        evaluator: Evaluator,
        stop_rule: StopRule,
        seconds: Callable[[EvaluationTask], float | None],
    ) -> Outcomes:
        """Evaluate all tasks; see `WorkerPool.evaluations`. Tasks under way on a worker that dies are retried.

        If several workers die during a batch, its recipes are retried one by one; raises HeapwrightError if workers
        die of one alone.
        """
        run, remaining = uuid4().hex, _TaskQueue(tasks, seconds)
        errors: list[Exception] = []
        under_way: dict[Any, list[EvaluationTask]] = {}
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        stopped = False
        try:
            while remaining or under_way:
                if (errors or stop_rule.over) and not stopped:
                    stopped = True
                    remaining.clear()
                    self._client.run(_stop, run, wait=False, on_error="ignore")
                while remaining and len(under_way) < _AHEAD * self.jobs and self._is_connected():
                    batch = remaining.batch(self.jobs)
                    future = self._submit(run, batch, evaluator, stop_rule)
                    under_way[future] = batch
                    future.add_done_callback(done.put)
                ready = _ready(done)
                for future, info in zip(ready, self._results(ready), strict=True):
                    yield from _outcomes(under_way.pop(future), info, remaining, errors)
                if not ready:
                    yield None
                self._look()
                if stopped and not self._threads:  # Ctrl-C in a terminal ends local workers, too
                    break
        finally:
            self._cancel(list(under_way))
        if errors:
            raise errors[0]

    def run_alone(self, work: Work[_Result], go_on: GoOn) -> Iterable[_Result]:
        """Work on one worker; see `WorkerPool.run_alone`. If ``go_on`` returns False, its results are dropped."""
        packed = zlib.compress(pickle.dumps(work), 1)
        future = self._client.submit(_worked, build(), packed, key=f"work-{uuid4().hex}")
        while not future.done():
            if not go_on(0):
                self._cancel([future])
                return []
            self._look()
            time.sleep(POLL_SECONDS)
        info = self._result(future)
        if isinstance(info, HeapwrightError):
            raise info
        if isinstance(info, Exception):
            raise HeapwrightError(f"{self._address}: a task for one Dask worker failed: {info}")
        result: list[_Result] = pickle.loads(info)
        return result

    def _cancel(self, futures: list[Any]) -> None:
        from distributed.client import ClosedClientError

        if not futures:
            return
        with suppress(ClosedClientError):  # the scheduler is gone, and its tasks with it
            self._client.cancel(futures)

    def _submit(self, run: str, batch: list[EvaluationTask], evaluator: Evaluator, stop_rule: StopRule) -> Any:
        incumbents = stop_rule.incumbents and Incumbents(
            stop_rule.incumbents.tolerance, front_bound=stop_rule.incumbents.front_bound
        )
        sent = replace(
            stop_rule, interrupt=_Stopped(run), incumbents=incumbents, until=stop_rule.until - time.perf_counter()
        )
        packed = pickle.dumps((batch, sent))
        return self._client.submit(
            _evaluate_batch, build(), packed, self._evaluator(evaluator), key=f"batch-{uuid4().hex}"
        )

    def _evaluator(self, evaluator: Evaluator) -> Any:
        """The future of an evaluator on the workers. A task makes it, so Dask makes it again if all its holders die."""
        if self._sent is None or self._sent[0] is not evaluator or self._sent[1].status in ("cancelled", "lost"):
            packed = zlib.compress(pickle.dumps(evaluator), 1)
            self._sent = evaluator, self._client.submit(_unpacked, packed, key=f"traces-{uuid4().hex}")
        return self._sent[1]

    def _results(self, futures: Sequence[Any]) -> list[bytes | Exception]:
        """Results of finished batches, gathered in one request if none of them failed."""
        try:
            info: list[bytes | Exception] = self._awaited(self._client.gather(futures, asynchronous=True))
            return info
        except HeapwrightError:
            raise
        except Exception:  # requested one by one, each future raises its own error
            return [self._result(future) for future in futures]

    def _result(self, future: Any) -> bytes | Exception:
        try:
            info: bytes = self._awaited(self._client.gather(future, asynchronous=True))
            return info
        except HeapwrightError:
            raise
        except Exception as error:
            return error

    def _awaited(self, asked: Any) -> Any:
        """The result of a future. It may be lost if its worker died after the task and no other worker is left."""
        answer = asyncio.run_coroutine_threadsafe(asked, self._client.loop.asyncio_loop)
        try:
            while not wait([answer], timeout=_LOOK_SECONDS).done:
                self._look()
            return answer.result()
        finally:
            answer.cancel()

    def _is_connected(self) -> bool:
        return bool(self._client.status == "running")

    def _look(self) -> None:
        """Count the workers' threads now and then; raise HeapwrightError if the scheduler or all workers are gone."""
        if self._client.status == "closed":
            raise HeapwrightError(
                f"{self._address}: the Dask scheduler is gone; what was finished is stored, and the same command goes "
                "on with another"
            )
        now = time.perf_counter()
        if now - self._looked < _LOOK_SECONDS or not self._is_connected():
            return
        self._looked = now
        try:
            self._threads = sum(self._client.nthreads().values())
        except (OSError, RuntimeError):  # reconnecting: the client reports whether that succeeds
            return
        self._alone_since = min(self._alone_since, now) if not self._threads else inf
        if now - self._alone_since > _ALONE_SECONDS:
            raise HeapwrightError(
                f"{self._address}: no Dask worker is left; what was finished is stored, and the same command goes on "
                "with others"
            )


class _TaskQueue:
    """Queue of the tasks to send, in order; tasks during which workers died come first, one at a time."""

    def __init__(self, tasks: Sequence[EvaluationTask], seconds: Callable[[EvaluationTask], float | None]) -> None:
        self._tasks, self._alone = deque(tasks), deque[EvaluationTask]()
        self._seconds = seconds

    def __len__(self) -> int:
        return len(self._tasks) + len(self._alone)

    def clear(self) -> None:
        self._tasks.clear()
        self._alone.clear()

    def return_all(self, batch: Sequence[EvaluationTask]) -> None:
        self._tasks.extendleft(reversed(batch))

    def one_by_one(self, batch: Sequence[EvaluationTask]) -> None:
        self._alone.extend(batch)

    def batch(self, jobs: int) -> list[EvaluationTask]:
        """The next tasks, of about `BATCH_SECONDS`; fewer towards the end, so that all workers end together."""
        if self._alone:
            return [self._alone.popleft()]
        most, room = ceil(len(self._tasks) / (_AHEAD * jobs)), BATCH_SECONDS
        batch: list[EvaluationTask] = []
        while self._tasks and len(batch) < most and room > 0:
            batch.append(self._tasks.popleft())
            info = self._seconds(batch[-1])
            room -= BATCH_SECONDS if info is None else info
        return batch


def _ready(done: queue.SimpleQueue[Any]) -> list[Any]:
    """The futures that are done; waits briefly for the first."""
    ready: list[Any] = []
    with suppress(queue.Empty):
        ready.append(done.get(timeout=POLL_SECONDS))
        while True:
            ready.append(done.get_nowait())
    return ready


def _outcomes(
    batch: list[EvaluationTask], answer: bytes | Exception, queued: _TaskQueue, errors: list[Exception]
) -> Iterator[tuple[EvaluationTask, EvaluationOutcome]]:
    """Outcomes of a batch; it returns to the queue if its worker, or the connection to it, was lost."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    if isinstance(answer, bytes):
        result: list[EvaluationOutcome] = pickle.loads(answer)
        yield from zip(batch, result, strict=True)
    elif isinstance(answer, CancelledError):
        queued.return_all(batch)
    elif isinstance(answer, KilledWorker) and len(batch) > 1:
        queued.one_by_one(batch)
    elif isinstance(answer, KilledWorker):
        errors.append(
            HeapwrightError(f"{batch[0].candidate.id}: Dask workers die of replaying it; have they enough memory?")
        )
    else:
        errors.append(answer)


# ---- on workers ----------------------------------------------------------------------------------------------------

_stopped_runs: set[str] = set()


class _Stopped:
    """Flag by which the driver of a run stops its workers."""

    def __init__(self, run: str) -> None:
        self._run = run

    @property
    def seen(self) -> bool:
        return self._run in _stopped_runs


async def _stop(run: str) -> None:
    _stopped_runs.add(run)


def _unpacked(packed: bytes) -> Evaluator:
    evaluator: Evaluator = pickle.loads(zlib.decompress(packed))
    return evaluator


def _worked(asked: str, packed: bytes) -> bytes:
    """The result of work, packed; an error if the driver has another build."""
    from distributed import get_worker

    _require_build(build(), asked, get_worker().address)
    return pickle.dumps(list(pickle.loads(zlib.decompress(packed))(_on)))


def _on(steps: int) -> bool:
    return True


def _evaluate_batch(asked: str, packed: bytes, evaluator: Evaluator) -> bytes:
    """Outcomes of a batch, packed; an error if the driver has another build."""
    from distributed import get_worker

    _require_build(build(), asked, get_worker().address)
    batch, stop_rule = pickle.loads(packed)
    stop_rule = replace(stop_rule, until=stop_rule.until + time.perf_counter())
    return pickle.dumps(list(evaluator.evaluate_each(batch, stop_rule)))
