"""What options of commands are read as."""

from __future__ import annotations

import click
import pytest
from case_tables import each

from heapwright._cli.options import Duration


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), ("1.5h", 5400), ("0.5s", 0.5)])
def test_times_have_units(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds
    assert Duration().convert(seconds, None, None) == seconds


@each("text", ["90", "0s", "-1s", "infs", "nans", "h", "", "5d"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time; write one as 90s, 5m or 1h"):
        Duration().convert(text, None, None)
