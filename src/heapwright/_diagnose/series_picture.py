"""The picture of a series: free memory, its largest block and its minimum over time."""

from __future__ import annotations

import numpy as np

from heapwright._diagnose.model import Picture
from heapwright._diagnose.readings import HEAP
from heapwright._diagnose.series import Series
from heapwright._diagnose.wording import Quantity


def picture_of(series: Series) -> Picture | None:
    """A line for each quantity; None for a single reading."""
    if len(series) < 2:
        return None
    timed = not np.isnan(series.seconds).any()
    x = (series.seconds - series.seconds[0]) / 3600 if timed else np.arange(len(series), dtype=float)
    names: dict[Quantity, str] = {
        "free": "free",
        "largest": "largest free block",
        "minimum": "minimum-ever free",
        "used": "used",
    }
    rows = [
        {"line": text, "x": float(at), "y": float(value)}
        for name, text in names.items()
        if name in series.columns
        for at, value in zip(x, series.columns[name], strict=True)
        if not np.isnan(value)
    ]
    title = "Memory over time" if series.memory == HEAP else f"Memory over time, {series.memory}"
    return Picture(title, "hours" if timed else "reading", "bytes" if series.unit == "B" else series.unit, rows)
