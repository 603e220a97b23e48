"""A column of a trace that seldom changes."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Changes:
    """A column that seldom changes: the rows of a window at which it takes new values."""

    def __init__(self) -> None:
        self._rows, self._values = array("Q"), array("I")
        self._before = 0

    def put(self, row: int, value: int) -> None:
        """Note that the column has a value from a row on."""
        self._rows.append(row)
        self._values.append(value)

    def extend(self, rows: NDArray[np.uint64], values: NDArray[np.uint32]) -> None:
        """Put several values."""
        self._rows.frombytes(rows.tobytes())
        self._values.frombytes(values.tobytes())

    def column(self, rows: int, dtype: type) -> NDArray[Any]:
        """The column of the window that ends now; the next window begins with the last value."""
        begins = np.array([0, *self._rows, rows], np.int64)
        values: NDArray[Any] = np.array([self._before, *self._values], dtype)
        self._before = int(values[-1])
        del self._rows[:], self._values[:]
        column: NDArray[Any] = np.repeat(values, begins[1:] - begins[:-1])
        return column
