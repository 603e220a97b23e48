"""A picture of the manual as SVG that looks the same everywhere: it uses no font of the machine that draws it.

Text stays text. Each piece is pinned to the width that Helvetica gives it, so any font fills the same
place. Colours follow the reader's system, light or dark, and lie on a ground of the picture's own.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

WIDTH = 540
SIZE = 15.0
"""Of the smallest text, in pixels: 10 where the picture is 360 wide."""
LINE = 19.0
"""From one line of text to the next."""

# Okabe and Ito, "Color universal design" (2008), as in reports: on a light ground, and on a dark one.
COLOURS = {
    "paper": ("#ffffff", "#14191e"),
    "ink": ("#1c2630", "#e4e9ed"),
    "soft": ("#55606a", "#a7b2bb"),
    "cloud": ("#8b949c", "#76828c"),
    "pale": ("#c5cbd1", "#46525c"),
    "grid": ("#e8ebee", "#262e35"),
    "wash": ("#eef3f7", "#202a32"),
    "blue": ("#0072B2", "#3f9fd8"),
    "sky": ("#b5d8ee", "#24536f"),
    "red": ("#C14F00", "#ee7f38"),
    "green": ("#00805D", "#2fbf96"),
    "sand": ("#F2CB75", "#c99a34"),
    "rose": ("#CC79A7", "#d58ab3"),
    "white": ("#ffffff", "#0d1115"),
    "black": ("#1c2630", "#14191e"),
}
"""`white` and `black`: of text on dark colours, and on sand."""

# Widths of Helvetica's characters from the space to the tilde, in thousandths of its size (Adobe's metrics of 1989).
_HELVETICA = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 "
    "584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 "
    "278 556 500 722 500 500 500 334 260 334 584"
)
_WIDTHS = {chr(32 + at): int(width) / 1000 for at, width in enumerate(_HELVETICA.split())}
_FAMILY = "Helvetica,Arial,Liberation Sans,sans-serif"


def width_of(words: str, bold: bool = False) -> float:
    """Pixels that a piece of text takes."""
    return (1.06 if bold else 1.0) * SIZE * sum(_WIDTHS.get(word, 0.584) for word in words)


def number(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    return f"{round(value, 1) + 0:g}"


class Picture:
    """What is drawn on a ground `WIDTH` pixels wide and `height` high.

    `told` says what a reader sees: it is the alternative text of the pages, too.
    """

    def __init__(self, told: str, height: float) -> None:
        self.told, self.height = told, height
        self._parts: list[str] = []
        self._used: set[tuple[str, str]] = set()

    def text(
        self, x: float, y: float, words: str, colour: str = "ink", anchor: str = "start", bold: bool = False
    ) -> None:
        """Write on one line, `y` its foot; `anchor` says which end of it is at `x`: start, middle or end."""
        looks = f' text-anchor="{anchor}"' if anchor != "start" else ""
        looks += ' font-weight="700"' if bold else ""
        width = number(width_of(words, bold))
        where = f'x="{number(x)}" y="{number(y)}" textLength="{width}" lengthAdjust="spacingAndGlyphs"'
        self._add(f"<text {where}{looks}{self._looks(colour)}>{html.escape(words, quote=False)}</text>")

    def lines(self, x: float, y: float, words: Iterable[str], colour: str = "ink", anchor: str = "start") -> None:
        """Write several lines, one below the other."""
        for at, line in enumerate(words):
            self.text(x, y + at * LINE, line, colour, anchor)

    def box(self, x: float, y: float, width: float, height: float, colour: str, edge: str = "", round: int = 0) -> None:
        """Fill a rectangle; `edge` is the colour of its outline, if it has one."""
        where = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        corners = f' rx="{round}"' if round else ""
        self._add(f"<rect {where}{corners}{self._looks(colour, edge)}/>")

    def card(self, x: float, y: float, width: float, title: str, lines: Sequence[str] = ()) -> float:
        """Draw a box with a title and lines below it; returns its height."""
        height = 34 + len(lines) * LINE
        self.box(x, y, width, height, "wash", "pale", 6)
        self.text(x + 10, y + 20, title, bold=True)
        self.lines(x + 10, y + 22 + LINE, lines, "soft")
        return height

    def dot(self, x: float, y: float, radius: float, colour: str, edge: str = "") -> None:
        """Fill a circle."""
        where = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self._add(f"<circle {where}{self._looks(colour, edge)}/>")

    def path(self, d: str, colour: str, width: float = 1.5, dashes: str = "") -> None:
        """Draw along a path of SVG."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._add(f'<path d="{d}" fill="none" stroke-width="{number(width)}"{dashed}{self._looks(stroke=colour)}/>')

    def area(self, d: str, colour: str) -> None:
        """Fill the inside of a path of SVG."""
        self._add(f'<path d="{d}"{self._looks(colour)}/>')

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.5, dashes: str = "") -> None:
        """Draw straight from point to point."""
        self.path(line_path(points), colour, width, dashes)

    def arrow(self, points: Sequence[tuple[float, float]], colour: str = "cloud") -> None:
        """Draw straight from point to point, with a head at the end; the last stretch is upright or level."""
        (x0, y0), (x, y) = points[-2:]
        along = (x > x0) - (x < x0), (y > y0) - (y < y0)
        back = [(x - 9 * along[0] + side * 5 * along[1], y - 9 * along[1] + side * 5 * along[0]) for side in (-1, 1)]
        self.line([*points[:-1], (x - 6 * along[0], y - 6 * along[1])], colour, 2)
        self.area(line_path([(x, y), *back]) + "Z", colour)

    def svg(self) -> str:
        """The picture as a file."""
        size = f'width="{WIDTH}" height="{number(self.height)}" viewBox="0 0 {WIDTH} {number(self.height)}"'
        ground = f'<rect width="{WIDTH}" height="{number(self.height)}" rx="8"{self._looks("paper")}/>'
        light, dark = (
            "".join(f".{a}-{b}{{{_PROPERTY[a]}:{COLOURS[b][item]}}}" for a, b in sorted(self._used)) for item in (0, 1)
        )
        style = f"<style>{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
        font = f'font-family="{_FAMILY}" font-size="{number(SIZE)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {font}>'
        text = f"<title>{html.escape(self.told, quote=False)}</title>"
        return "\n".join([head, text, style, ground, *self._parts, "</svg>"]) + "\n"

    def _add(self, part: str) -> None:
        self._parts.append(part)

    def _looks(self, fill: str = "", stroke: str = "") -> str:
        named = [(what, colour) for what, colour in (("f", fill), ("s", stroke)) if colour]
        self._used.update(named)
        return f' class="{" ".join(f"{what}-{colour}" for what, colour in named)}"'


_PROPERTY = {"f": "fill", "s": "stroke"}


def line_path(points: Iterable[tuple[float, float]]) -> str:
    """Straight lines through points, as SVG writes them."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
