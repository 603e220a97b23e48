"""TOML from any source is read in bounded time and memory, or refused in one line, for any content."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from heapwright._explore.space_file import read_space
from heapwright._heaps.foreign.adapter import Adapter, is_adapter
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError
from heapwright._support.toml import DEEPEST, MOST_CHARACTERS, parse_toml

REFUSED = {
    "x = " + "[" * 50_000 + "]" * 50_000: "nested deeper than 64",
    "x = " + "[" * 100 + "]" * 100: "nested deeper than 64",
    "a" + ".a" * 20_000 + " = 1": "a key of more than 64 names",
    "a" + " . 'a'" * 20_000 + " = 1": "a key of more than 64 names",
    "align = " + "9" * 100_000: "integer",
    "align = 0x" + "f" * 100_000: "an integer of more than 128 bits",
    "x = [{y = 0x" + "f" * 33 + "}]": "an integer of more than 128 bits",
    "#" * (MOST_CHARACTERS + 1): "1,048,577 characters; at most 1,048,576",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_a_bomb_is_refused_at_once(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.toml"
    path.write_text(text)
    start = time.process_time()
    with pytest.raises(HeapwrightError, match=rf"bomb.toml: not valid TOML: .*{REFUSED[text]}"):
        Recipe.load(path)
    with pytest.raises(HeapwrightError, match=r"bomb.toml: not valid TOML: .*"):
        read_space(path, [], None, 8)
    with pytest.raises(HeapwrightError, match=r"bomb: not TOML: .*"):
        Adapter.parse(text, "bomb")
    assert not is_adapter(path)
    assert time.process_time() - start < 5


def test_what_is_within_the_bounds_is_read() -> None:
    lists = "x = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    assert list(parse_toml(lists)) == ["x"]
    assert parse_toml("a" + ".a" * (DEEPEST - 2) + " = 1") != {}
    assert parse_toml('about = """' + "One two. Three four. " * 1000 + '"""')["about"].count("One") == 1000
    assert parse_toml(f"x = {2**64}") == {"x": 2**64}
