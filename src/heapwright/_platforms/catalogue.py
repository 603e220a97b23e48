"""The platforms that a heap can be generated for, and their requirements on a recipe."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._recipes.pools import ALIGNING, General
from heapwright._support.errors import HeapwrightError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from heapwright._recipes.pools import Pool
    from heapwright._recipes.recipe import Recipe

_FOLDER = Path(__file__).parent
_ABOUT = "platform.toml"
_PAGE = "app_README.md"
_HOOKS = "hooks"
_HOOKS_PAGE = "app_trace_README.md"
_TRACE = _FOLDER / "trace"
_TRACERS = _FOLDER / "tracers"


@dataclass(frozen=True)
class Platform:
    """A surrounding that a heap goes into.

    `align` is the least alignment of objects that it needs, in bytes, which a recipe that has less is raised to; with
    `over_aligned` it also asks for objects aligned to more, which only pools with headers serve. `lock` is what its
    port takes around each call of the heap; without one it takes none, and the recipe's `threads` says who may call.
    `threads` are the ways that its port can do with in place of "none", the best first; caches hold `cache_bytes` then.
    `functions` are those of the core that its port calls in addition to what every heap has, `cache_functions` such as
    a heap with caches has. With `counters` its functions return the heap's counters, so the recipe gets them. With
    `traps` an invalid pointer stops the program if the recipe has checks and nothing else is defined. `entropy` is
    where it has random words, a header and an expression, for the keys of hardened heaps; without one the program
    provides them. Without `realloc` a program requests a new object, copies, and frees. `like` is the platform whose
    files it begins with, `hooks_of` that whose hooks record the calls of the heap that it has now. `sources` are what
    its signatures and rules of locking were taken from, with versions; `run_on` says where its port was run. `builds`
    says what builds a heap there, where that is not the program: then it is no package.
    """

    name: str
    title: str
    align: int
    sources: tuple[str, ...]
    run_on: str
    over_aligned: bool = False
    lock: str | None = None
    threads: tuple[str, ...] = ()
    cache_bytes: int = 65536
    like: str | None = None
    hooks_of: str | None = None
    functions: tuple[str, ...] = ()
    cache_functions: tuple[str, ...] = ()
    counters: bool = False
    traps: bool = False
    entropy: tuple[str, ...] = ()
    realloc: bool = True
    builds: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that are written with the heap's, for the prefix `app`: the page first."""
        return tuple(sorted(self._paths(), key=lambda name: (name != _PAGE, name)))

    @property
    def readme(self) -> str:
        """The page that says what to do, for the prefix `app`."""
        return self.text(_PAGE)

    def text(self, file: str) -> str:
        """The text of one of `files`, for the prefix `app`."""
        return self._paths()[file].read_text(encoding="utf-8")

    @property
    def hooks(self) -> dict[str, str]:
        """The files that record the calls of the heap it has now, by name, for the prefix `app`: the page first.

        Empty where there are none.
        """
        if self.hooks_of is None:
            return {}
        texts = {_HOOKS_PAGE: ""}
        for folder in (_FOLDER / self.hooks_of / _HOOKS, _TRACE):
            for path in sorted(folder.iterdir()):
                texts[path.name] = texts.get(path.name, "") + path.read_text(encoding="utf-8")
        return texts

    def require(self, recipe: Recipe, heap: str) -> None:
        """Raise HeapwrightError in one line, with the heap's name, where the platform cannot do with the recipe."""
        if recipe.memory:
            raise HeapwrightError(
                f"{heap}: lies in several memories, and {self.name} gives it one; leave the platform out, or use the "
                "pools of one memory"
            )
        if recipe.pools[0].moves_objects:
            raise HeapwrightError(
                f"{heap}: its objects move, and {self.name} needs them to stay; use no {recipe.pools[0].kind} pool"
            )
        if recipe.threads == "cached" and self.lock:
            raise HeapwrightError(
                f"{heap}: has caches of threads, and {self.name} takes a lock around each call ({self.lock}); "
                'give the recipe threads = "lock"'
            )
        if self.over_aligned and not any(pool.aligns for pool in recipe.pools):
            raise HeapwrightError(
                f"{heap}: cannot align objects to more than {max(recipe.align, self.align)} bytes, as {self.name} "
                f'needs; give the recipe a pool of kind = "{ALIGNING}"'
            )

    def aligned(self, recipe: Recipe) -> Recipe:
        """The recipe at the alignment that the platform needs, or more where it has more.

        Raises ContradictionError in one line where no such heap can be.
        """
        return recipe if recipe.align >= self.align else recipe.at_alignment(self.align)

    def threaded(self, recipe: Recipe) -> Recipe:
        """The recipe as several threads of the platform may call it: the first of `threads` that it can have.

        A recipe that says how stays as it is, but its caches get the platform's bytes if it leaves them open; where the
        port has a lock, that is the recipe's. Caches are left out where frees are checked, which need the lock.
        """
        if self.lock:
            return recipe.model_copy(update={"threads": "none"})
        if recipe.threads == "cached" in self.threads and "cache_bytes" not in recipe.to_dict():
            return self._in_threads(recipe, "cached")
        if recipe.threads != "none" or not self.threads:
            return recipe
        for threads in self.threads[:-1]:
            if threads == "cached" and recipe.checks != "none":
                continue
            with suppress(HeapwrightError):
                return self._in_threads(recipe, threads)
        return self._in_threads(recipe, self.threads[-1])

    def adapted(self, recipe: Recipe) -> Recipe:
        """The recipe as it is generated for the platform, and explored: at its alignment, for its threads, with
        counters if the port returns them, and without resizing in place if there is no realloc.

        Raises HeapwrightError where the platform cannot use the recipe.
        """
        self.require(recipe, recipe.name or recipe.hash)
        recipe = self.threaded(self.aligned(recipe))
        if self.counters and not recipe.counters:
            recipe = recipe.model_copy(update={"counters": True})
        if not self.realloc:
            recipe = recipe.model_copy(update={"pools": tuple(map(_unresized, recipe.pools))})
        return recipe

    def sentence(self) -> str:
        """What its port adds to a heap, and what the metrics of a replay count of it."""
        adds = [f"alignment {self.align} or more"]
        adds += ["counters"] if self.counters else []
        adds += [] if self.realloc else ["resizing by malloc, copy and free"]
        text = f"for {self.name}, every recipe has {', '.join(adds[:-1]) + ' and ' if adds[1:] else ''}{adds[-1]}"
        return f"{text}; its lock ({self.lock}) takes instructions, and no counted access" if self.lock else text

    def _in_threads(self, recipe: Recipe, threads: str) -> Recipe:
        caches = {"cache_bytes": self.cache_bytes} if threads == "cached" else {}
        return recipe.from_dict(recipe.to_dict() | {"threads": threads} | caches)

    def _paths(self) -> dict[str, Path]:
        folders = [_FOLDER / name for name in (self.like, self.name) if name]
        files = [path for folder in folders for path in folder.iterdir()]
        return {path.name: path for path in files if path.is_file() and path.name != _ABOUT}


def _unresized(pool: Pool) -> Pool:
    """The pool as a program uses it that has no realloc."""
    return pool.model_copy(update={"resize": "move"}) if isinstance(pool, General) else pool


@cache
def platforms() -> dict[str, Platform]:
    """Return every platform by its name, in alphabetical order."""
    return {path.parent.name: _read(path) for path in sorted(_FOLDER.glob(f"*/{_ABOUT}"))}


def platform(name: str) -> Platform:
    """Return the platform of that name. Raises HeapwrightError for an unknown one."""
    if result := platforms().get(name):
        return result
    raise HeapwrightError(f"{name}: no such platform; {did_you_mean(name, platforms())}", parameter="platform")


@cache
def tracers() -> dict[str, dict[str, str]]:
    """What records the heap calls of a program on Linux from without, by the name of the tool that does.

    Each is files by their names, for the prefix `app`: the page of what to do first.
    """
    results = {}
    for folder in sorted(_TRACERS.iterdir()):
        paths = sorted(folder.iterdir(), key=lambda path: (path.name != _HOOKS_PAGE, path.name))
        results[folder.name] = {path.name: path.read_text(encoding="utf-8") for path in paths}
    return results


def hooks(name: str) -> dict[str, str]:
    """The files that record heap calls, of a platform's heap or by one of `tracers`; their names for the prefix `app`.

    Raises HeapwrightError for an unknown name, and for a platform that has none.
    """
    if name in tracers():
        return tracers()[name]
    if name not in platforms():
        known = did_you_mean(name, [*platforms(), *tracers()])
        raise HeapwrightError(f"{name}: no such platform, nor tracer of Linux; {known}", parameter="platform")
    if result := platforms()[name].hooks:
        return result
    having = ", ".join([item for item, platform in platforms().items() if platform.hooks] + list(tracers()))
    raise HeapwrightError(f"{name}: no hooks record its heap; they do for {having}", parameter="platform")


def _read(path: Path) -> Platform:
    keys = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = {key: tuple(value) for key, value in keys.items() if isinstance(value, list)}
    return Platform(name=path.parent.name, **{**keys, **lists})
