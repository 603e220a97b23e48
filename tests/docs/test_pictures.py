"""The manual's pictures are those that the code draws today, and can be read on a telephone."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from case_tables import each
from run_length import brief

from heapwright._explore import default_space
from pictures.catalogue import EXPLORED, IMAGES, PICTURES, with_words
from pictures.drawing import COLOURS, Picture

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DRAWN = sorted([*PICTURES, *(name for one in EXPLORED.values() for name in one.pictures)])

NARROW, LEGIBLE = 360, 10
"""Pixels of a telephone's screen, and of the least letters there."""
MOST_BYTES = 40_000
DEAR = ("growth", "reserve")
"""Take seconds; long runs draw them."""


@pytest.mark.parametrize("name", brief([name for name in PICTURES if name not in DEAR], [*PICTURES]))
def test_a_picture_is_what_is_drawn_today(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_space, "COUNTED_CALLS", 120_000)  # as installed: shorter futures make fewer recipes
    drawn = PICTURES[name]()
    assert (IMAGES / f"{name}.svg").read_text(encoding="utf-8") == drawn.svg(), f"make pictures; or: -m pictures {name}"


def test_every_image_is_shown_and_every_page_shows_one_that_is_there() -> None:
    shown = {item for path in PAGES for item in re.findall(r"images/([\w./-]+)\)", path.read_text(encoding="utf-8"))}
    assert shown == {path.relative_to(IMAGES).as_posix() for path in IMAGES.rglob("*.*")}
    assert shown == {f"{name}.svg" for name in DRAWN}


@each("name", DRAWN)
def test_a_page_says_of_a_picture_what_the_picture_says(name: str) -> None:
    (title,) = (item for item in root_of(name) if item.tag.endswith("title"))
    assert title.text
    pages = [path.read_text(encoding="utf-8") for path in PAGES]
    assert [page for page in pages if page != with_words(page, name, title.text)] == []


# ---- how it looks --------------------------------------------------------------------------------------------------


def root_of(name: str) -> ElementTree.Element:
    return ElementTree.fromstring((IMAGES / f"{name}.svg").read_text(encoding="utf-8"))


def boxes(root: ElementTree.Element) -> list[tuple[str, float, float, float, float]]:
    """The pieces of text: words, left, top, right, bottom."""
    size, result = float(root.attrib["font-size"]), []
    for item in root:
        if item.tag.endswith("text"):
            width, x, y = (float(item.attrib[key]) for key in ("textLength", "x", "y"))
            remaining = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[item.get("text-anchor", "start")]
            result.append((item.text or "", remaining, y - 0.75 * size, remaining + width, y + 0.2 * size))
    return result


@each("name", DRAWN)
def test_a_picture_can_be_read(name: str) -> None:
    root = root_of(name)
    assert (IMAGES / f"{name}.svg").stat().st_size <= MOST_BYTES
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert float(root.attrib["font-size"]) * NARROW / width >= LEGIBLE
    pieces = [item for item in boxes(root) if item[0]]
    outside = [
        piece for piece in pieces if piece[1] < 4 or piece[3] > width - 4 or piece[2] < 4 or piece[4] > height - 2
    ]
    assert outside == []
    covered = [
        (a[0], b[0])
        for a, b in combinations(pieces, 2)
        if min(a[3], b[3]) - max(a[1], b[1]) > 0 and min(a[4], b[4]) - max(a[2], b[2]) > 1
    ]
    assert covered == []


def test_text_that_leaves_the_picture_or_covers_other_text_is_found() -> None:
    picture = Picture("words", 100)
    picture.text(10, 50, "some words")
    picture.text(20, 52, "others")
    picture.text(530, 80, "outside")
    first, second, outside = boxes(ElementTree.fromstring(picture.svg()))
    assert first[3] > second[1] and first[4] > second[2]
    assert outside[3] > 536


def lightness(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@each(
    ("letters", "ground"),
    [
        *((letters, "paper") for letters in ("ink", "soft", "blue", "red", "green")),
        *((letters, "wash") for letters in ("ink", "soft")),
        *(("white", ground) for ground in ("blue", "red", "green")),
        ("black", "sand"),
        ("paper", "ink"),
        ("black", "rose"),
    ],
)
def test_letters_stand_out_light_and_dark(letters: str, ground: str) -> None:
    for at in (0, 1):
        item, other = sorted((lightness(COLOURS[letters][at]), lightness(COLOURS[ground][at])), reverse=True)
        assert (item + 0.05) / (other + 0.05) >= 4.5, (letters, ground, ("light", "dark")[at])
