"""A trace that is written as it comes, in bounded memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright.errors import HeapwrightError
from heapwright.files import parquet

Columns = dict[str, NDArray[Any]]

_PART = 1 << 18


class Parts:
    """A table of calls that grows: in memory while it is small, else in parts on the disk.

    Attributes:
        sites: names that the column `site` of what is added counts into; whoever adds may lengthen the list.
    """

    def __init__(self, folder: Path | None) -> None:
        """Keep parts in a folder of their own in `folder`, whose owner removes it; None keeps all rows in memory."""
        self.sites: list[str] = []
        self._folder = folder
        self._held: list[Columns] = []
        self._held_rows = 0
        self._parts: list[Path] = []
        self._aligned = False

    def add(self, columns: Columns) -> None:
        """Add rows. `site` may be missing where there is none."""
        if not len(columns["op"]):
            return
        self._held.append(columns)
        self._held_rows += len(columns["op"])
        self._aligned = self._aligned or bool(columns["align"].any())
        if self._folder is not None and self._held_rows >= _PART:
            self._write_part(self._folder)

    def write(self, path: Path, metadata: dict[str, str]) -> None:
        """Write the trace as Parquet; raises HeapwrightError where it has no row."""
        if not self._parts and not self._held:
            raise HeapwrightError(f"{path}: no calls; a trace has at least one row")
        if self._folder is None or not self._parts:
            rows = self._taken()
            if not self._aligned:
                del rows["align"]
            parquet.write(path, rows, metadata)
            return
        if self._held:
            self._write_part(self._folder)
        parquet.join(self._parts, path, metadata, without=() if self._aligned else ("align",))

    def columns(self) -> Columns:
        """All rows, which are taken out; only of a table in memory. `site` still counts into `sites`."""
        return self._joined()

    def _write_part(self, folder: Path) -> None:
        own = self._parts[0].parent if self._parts else Path(tempfile.mkdtemp(dir=folder))
        part = own / f"{len(self._parts)}.parquet"
        parquet.write(part, self._taken(), {})
        self._parts.append(part)

    def _taken(self) -> Columns:
        rows = self._joined()
        if "site" in rows:
            rows["site"] = np.array(self.sites, dtype=object)[rows["site"]]
        return rows

    def _joined(self) -> Columns:
        """The rows in memory, column by column, each of which is let go as it is joined."""
        held, self._held, self._held_rows = self._held, [], 0
        rows = [len(columns["op"]) for columns in held]
        names = dict.fromkeys(name for columns in held for name in columns)
        return {
            name: np.concatenate(
                [
                    columns.pop(name) if name in columns else np.zeros(count, np.uint32)
                    for columns, count in zip(held, rows, strict=True)
                ]
            )
            for name in names
        }
