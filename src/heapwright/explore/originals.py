"""The traces that a study was made on, read again, and the space of the recipes that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from heapwright.errors import HeapwrightError
from heapwright.explore.stored import Role
from heapwright.explore.study import Study, TraceInfo
from heapwright.recipes.recipe import Recipe
from heapwright.traces.trace import Trace


def originals(
    study: Study, paths: Sequence[Path] = (), role: Role = "explored", *, repair: bool = False
) -> list[Trace]:
    """Read the traces of a role; `paths` says where those lie now that have moved, by the names of their files.

    Raises HeapwrightError where one came from no file, or is not the trace that the study was made on.
    """
    return [original(study, info, paths, repair=repair) for info in study.traces(role)]


def original(study: Study, info: TraceInfo, paths: Sequence[Path] = (), *, repair: bool = False) -> Trace:
    """Read one of the traces; see `originals`."""
    given = {path.stem: path for path in paths}
    if not info.path and info.name not in given:
        raise HeapwrightError(f"{study.path}: trace {info.name} came from no file; give its file", parameter="moved")
    path = given.get(info.name) or place(study, info) or Path(info.path)
    if not path.exists():
        raise HeapwrightError(f"{path}: no such file; say where trace {info.name} lies now", parameter="moved")
    trace = Trace.read(path, repair=repair)
    if TraceInfo.of(trace).digest != info.digest:
        raise HeapwrightError(f"{path}: not the trace that {study.path} was explored on; give that one")
    return trace


def place(study: Study, info: TraceInfo) -> Path | None:
    """The file of a trace: where it was, or the same name beside the study."""
    places = [Path(info.path), study.path.parent / Path(info.path).name] if info.path else []
    return next((place for place in places if place.is_file()), None)


def copies_of(study: Study, name: str) -> list[TraceInfo]:
    """The copies of the trace of that name."""
    names = [info.name for info in study.traces()]
    found = []
    for copy in study.traces("copy"):
        of = max((one for one in names if copy.name.startswith(f"{one}~")), key=len, default=None)
        if of == name:
            found.append(copy)
    return found


class StoredSpace:
    """The recipes of a study, as the space that its exploration goes on in; see `heapwright.explore.space.Space`."""

    def __init__(self, study: Study) -> None:
        """Take the recipes, and what tells their space from others, from the study."""
        self.align = study.align
        self.digest: str = study.meta["space"]
        self._size: int = study.meta["recipes"]
        self._recipes: list[Recipe] = []
        self.zoo: dict[str, Recipe] = {}
        self.beside: list[Recipe] = []
        for recipe, zoo_name, ranked in study.recipes():
            if not ranked:
                self.beside.append(recipe)
                continue
            self._recipes.append(recipe.canonical())
            if zoo_name:
                self.zoo[recipe.hash] = recipe

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once."""
        return iter(self._recipes)

    def __len__(self) -> int:
        return self._size
