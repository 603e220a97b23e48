"""Figures as TOML declares them: Vega-Lite, with rows and other values as expressions over a page's results.

A figure has a `name`, a `title` and a `note`, sentences, and a chart in Vega-Lite's own keys. In it a text that begins
with "=" is an expression, `field = "size:Q"` a field with its type, and `rows` an expression in place of `data`; a
layer is left out where its `when`, an expression, is false. `let` has names and their expressions; the colours of
`heapwright.figure` are known by name. With `panels`, a name and its values, the chart is drawn for each, below each
other, with its `heading`. `form` names a figure of `pages/forms.toml`: what that has stands where the figure does not
say otherwise. A figure that is `aside` stands in the details of a page alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from heapwright import figure
from heapwright_papers.answers import evaluate, sentence
from heapwright_papers.documents import merged, tables

WIDTH = 540
"""Unless a figure sets its `pixels`: at the width of a phone the words are still three quarters of their size."""
_LOOKS = ("BLUE", "VERMILLION", "INK", "SOFT", "CLOUD", "SI", "quantity")
_TYPES = {"Q": "quantitative", "N": "nominal"}
_OWN = {"name", "title", "note", "let", "when", "panels", "spacing", "pixels", "form", "aside"}


class Aside(figure.Figure):
    """A figure that stands in the details of a page alone."""


class _Declared(alt.TopLevelMixin):
    """A chart that is declared in full: `heapwright.figure` asks for nothing but its specification."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = {"$schema": alt.SCHEMA_URL, **spec}

    def to_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The specification in Vega-Lite."""
        return self._spec


def decades(low: float, high: float, few: int = 0) -> list[float]:
    """Powers of ten in a range; where there are no more than `few`, three times these, too."""
    every = [10.0**exponent for exponent in range(8)]
    within = [power for power in every if low <= power <= high]
    return within if len(within) > few else [t for power in every for t in (power, 3 * power) if low <= t <= high]


def drawn(told: Mapping[str, Any], names: Mapping[str, Any]) -> figure.Figure:
    """The figure that a part of a page declares, over these names."""
    told = merged(tables("pages/forms")[told["form"]], told) if "form" in told else told
    looks = {name: getattr(figure, name) for name in _LOOKS}
    known = _with({"decades": decades, **looks, **names}, told.get("let", {}))
    chart = {key: value for key, value in told.items() if key not in _OWN}
    width = told.get("pixels", WIDTH)
    if "panels" in told:
        ((name, values),) = told["panels"].items()
        panels = [_headed(_filled(chart, {**known, name: value})) for value in evaluate(values, known)]
        spec: dict[str, Any] = {"vconcat": panels}
        spec |= {"spacing": told["spacing"]} if "spacing" in told else {}
    else:
        spec = _filled(chart, known)
    name, title, note = (sentence(told[key], known) for key in ("name", "title", "note"))
    return (Aside if told.get("aside") else figure.Figure)(name, title, note, _Declared(spec), width)


def _headed(panel: dict[str, Any]) -> dict[str, Any]:
    """A panel with its `heading`, if it has one, above its left end."""
    style = {"fontSize": 12, "anchor": "start", "offset": 4, "fontWeight": "normal", "frame": "group"}
    return panel | {"title": {"text": panel.pop("heading"), **style}} if "heading" in panel else panel


def _with(names: Mapping[str, Any], let: Mapping[str, str]) -> dict[str, Any]:
    known = dict(names)
    for name, expression in let.items():
        known[name] = evaluate(expression, known)
    return known


def _filled(told: Any, names: Mapping[str, Any]) -> Any:
    """The same in Vega-Lite, with the values of its expressions."""
    if isinstance(told, str):
        return evaluate(told[1:], names) if told.startswith("=") else told
    if isinstance(told, Mapping):
        known = _with(names, told.get("let", {}))
        results: dict[str, Any] = {}
        for key, value in told.items():
            if key == "rows":
                results["data"] = {"values": list(evaluate(value, known))}
            elif key == "field":
                results["field"], _, short = value.partition(":")
                results |= {"type": _TYPES[short]} if short else {}
            elif key not in ("let", "when"):
                results[key] = _filled(value, known)
        return results
    if isinstance(told, list):
        shown = (item for item in told if not isinstance(item, dict) or evaluate(item.get("when", "True"), names))
        return [_filled(item, names) for item in shown]
    return told
