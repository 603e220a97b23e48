"""Faults that once passed all tests, and for each a test that fails on it now: `make mutants` tries them first.

    .venv/bin/python research/mutation/planted.py

prints the faults whose test passes. Each is a line of source, what stands in its place, and the test.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from changed import PACKAGE, ROOT, forked, noticed, warm


class Planted(NamedTuple):
    """What stands in a file of the package, what is put there instead, and the test that notices it."""

    file: str
    right: str
    wrong: str
    test: str

    @property
    def path(self) -> Path:
        return PACKAGE / self.file

    def code(self) -> CodeType:
        """The changed module; ValueError where the file says something else by now."""
        text = self.path.read_text(encoding="utf-8")
        if text.count(self.right) != 1:
            raise ValueError(f"{self.file}: says {self.right!r} {text.count(self.right)} times, once expected")
        return compile(text.replace(self.right, self.wrong), self.path, "exec")


FAULTS = {
    "where no time is left for copies they run on": Planted(
        "_explore/budget.py",
        "share = self.validation / kept if kept else 0.0",
        "share = self.validation / kept if kept else inf",
        "tests/explore/test_progress_and_budget.py::test_progress_and_time_stay_within_what_there_is[1]",
    ),
    "what is tried twice counts twice": Planted(
        "_explore/schedule.py",
        "        if not stop_rule.over:  # what was pruned and waits again counts once, not twice",
        "        if stop_rule.over:",
        "tests/explore/test_progress_and_budget.py::test_progress_and_time_stay_within_what_there_is[10]",
    ),
    "no arena below the high-water mark is tried": Planted(
        "_replay/monotone_minimum.py",
        "DOWNWARD = 256",
        "DOWNWARD = 0",
        "tests/replay/test_monotone_minimum.py::test_what_serves_just_below_the_mark_is_found",
    ),
    "the full round of tries is dropped": Planted(
        "_replay/monotone_minimum.py",
        "(tries // 16, tries // 4, tries)",
        "(tries // 16, tries // 4)",
        "tests/replay/test_monotone_minimum.py::test_a_failing_stretch_of_a_few_in_so_many_tries_is_met_wherever_it_lies[400]",
    ),
    "one refusal elsewhere is forgiven": Planted(
        "_studies/robustness.py",
        "if result.refused and not",
        "if result.refused > 1 and not",
        "tests/studies/test_recommendations.py::test_no_failed_request_elsewhere_is_forgiven[1-held out-traces held out]",  # noqa: E501
    ),
    "five refusals elsewhere are forgiven": Planted(
        "_studies/robustness.py",
        "if result.refused and not",
        "if result.refused > 5 and not",
        "tests/studies/test_recommendations.py::test_no_failed_request_elsewhere_is_forgiven[5-held out-traces held out]",  # noqa: E501
    ),
    "merged time falls between windows": Planted(
        "_traces/merge.py",
        'np.maximum(np.maximum.accumulate(window["ts_us"]), latest)',
        'np.maximum.accumulate(window["ts_us"])',
        "tests/traces/test_streams.py::test_a_call_without_a_time_is_merged_behind_the_one_before_it_in_another_window",
    ),
    "the last of equal members dominates": Planted(
        "_studies/pareto.py",
        "best = int(np.argmax(products))",
        "best = len(products) - 1 - int(np.argmax(products[::-1]))",
        "tests/studies/test_pareto.py::test_of_members_that_beat_a_point_alike_the_first_is_named[members0]",
    ),
}
"""What is wrong -> where; from reviews that found no test to fail."""


def survivors() -> list[str]:
    """The faults that their test does not notice."""
    os.chdir(ROOT)
    warm()
    return [
        name
        for name, fault in FAULTS.items()
        if not fault.code() or not forked("planted.log", 60, noticed, fault, [[fault.test]])
    ]


if __name__ == "__main__":
    sys.exit("\n".join(survivors()) or None)
