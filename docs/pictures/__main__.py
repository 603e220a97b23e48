"""Draw the manual's pictures, and write what they show into the pages as their alternative texts.

    PYTHONPATH=docs python -m pictures [NAME]...

Without names all of them; those of explorations take two minutes.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from pictures.catalogue import EXPLORED, IMAGES, PICTURES, with_words
from pictures.drawing import Picture
from pictures.recordings import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [*PICTURES, *(name for one in EXPLORED.values() for name in one.pictures)]


def write(name: str, picture: Picture) -> None:
    """Write a picture, and its words into the pages that show it."""
    (IMAGES / f"{name}.svg").write_text(picture.svg(), encoding="utf-8")
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = with_words(before, name, picture.told)
        if after != before:
            page.write_text(after, encoding="utf-8")
    click.echo(f"{name}: {len(picture.svg()):,} bytes")


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[NAME]...")
def command(names: tuple[str, ...]) -> None:
    """Draw the pictures of these names."""
    for name in names or NAMES:
        if name in PICTURES:
            write(name, PICTURES[name]())
    for explored in EXPLORED.values():
        if not names or {*names} & {*explored.pictures}:
            with TemporaryDirectory() as folder:
                explored.make(Path(folder))
                for name, picture in explored.drawn(Path(folder)).items():
                    write(name, picture)


if __name__ == "__main__":
    command()
