"""Messages: pydantic's errors as one line that names the pool, the key and what would be valid."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from heapwright._recipes.kinds.base import BasePool
from heapwright._recipes.model import Table, pydantic_model
from heapwright._recipes.pools import KINDS, MAX_CLASSES, MAX_MEMORIES, MAX_POOLS, MAX_REACH, MAX_REQUEST
from heapwright._support.errors import unknown_key

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails


def one_line(error: Any, data: Mapping[str, Any], table: type[Table]) -> str:
    """Say what is wrong with the first faulty key of a recipe, and how many more there are.

    `error` is pydantic's ValidationError, `table` what was to be read.
    """
    details = error.errors(include_url=False)
    # A list whose items are wrong is reported as too short, too.
    details = [detail for detail in details if len(detail["loc"]) > 1 or detail["type"] != "too_short"] or details
    first = details[0]
    message = _explain(first, data, table)
    keys = {detail["loc"][:4] for detail in details}
    return message + (f" (and {len(keys) - 1} more)" if len(keys) > 1 else "")


def pool_name(index: int, data: Mapping[str, Any]) -> str:
    """What messages call a pool, by its index in the data of a recipe."""
    pools = data.get("pool", data.get("pools"))
    pool = pools[index] if isinstance(pools, list | tuple) else None
    kind = pool.get("kind") if isinstance(pool, Mapping) else getattr(pool, "kind", None)
    return f"pool {index + 1}" + (f" ({kind})" if isinstance(kind, str) and kind in KINDS else "")


def _explain(detail: ErrorDetails, data: Mapping[str, Any], table: type[Table]) -> str:
    prefix, path = "", list(detail["loc"])
    if path[:1] in (["pool"], ["pools"]) and len(path) > 1:
        prefix = pool_name(int(path[1]), data) + ": "
        if len(path) == 2:
            return prefix + _explain_pool(detail)
        return prefix + _explain_key(detail, KINDS[str(path[2])], str(path[3]))
    return prefix + _explain_key(detail, table, str(path[0]) if path else "")


def _explain_pool(detail: ErrorDetails) -> str:
    kinds = ", ".join(KINDS)
    if detail["type"] == "union_tag_not_found":
        return f'"kind" is missing; valid: {kinds}'
    if detail["type"] == "union_tag_invalid":
        return f'"kind" {_quoted(detail["input"]["kind"])} is not valid; valid: {kinds}'
    return "is not a table; valid: [[pool]] with a kind"


def _explain_key(detail: ErrorDetails, table: type[Table], key: str) -> str:
    names = {"pool" if name == "pools" else name: field for name, field in pydantic_model(table).model_fields.items()}
    if detail["type"] == "extra_forbidden":
        return _removed(table, key) or unknown_key(key, names)
    if hint := _hint(table, key, detail["input"]):
        return hint
    if key == "memory" and table not in KINDS.values():
        valid = f"a table of 1 to {MAX_MEMORIES} names with their bytes, from 1 to {MAX_REACH}, as in fast = 16384"
        return f'"memory": {_quoted(detail["input"])} is not valid; valid: {valid}'
    if key in ("pool", "pools"):
        return f"needs 1 to {MAX_POOLS} [[pool]] tables; valid kinds: {', '.join(KINDS)}"
    if detail["type"] == "missing":
        return f'"{key}" is missing; valid: {_valid(names[key])}'
    return f'"{key}": {_quoted(detail["input"])} is not valid; valid: {_valid(names[key])}'


def _removed(table: type[Table], key: str) -> str:
    """The message for a key that a kind of pool once had; empty for any other."""
    instead = table.removed_keys.get(key, "") if issubclass(table, BasePool) else ""
    return instead and f'"{key}" was removed, Heapwright 0.2.0 is the last to read it; {instead}'


def _hint(table: type[Table], key: str, value: Any) -> str:
    """The message of a kind for a value that it rejects; empty if the bounds explain enough."""
    if not issubclass(table, BasePool) or isinstance(value, list | dict):
        return ""
    return table.hints.get((key, value), "")


def _quoted(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _valid(field: FieldInfo) -> str:
    """Say what values a field takes, from its type and bounds."""
    return ", ".join(_valid_of(*part) for part in _alternatives(field.annotation, field.metadata))


def _alternatives(annotation: Any, metadata: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Every member of a union with its constraints, without None."""
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata = [constraint for part in inner for constraint in getattr(part, "metadata", ())]
    if get_origin(annotation) in (Literal, tuple) or not get_args(annotation):
        if annotation is not NoneType:
            yield annotation, metadata
        return
    for part in get_args(annotation):
        yield from _alternatives(part, metadata)


def _valid_of(annotation: Any, metadata: list[Any]) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(map(str, get_args(annotation)))
    if get_origin(annotation) is tuple:
        return f"a list of 1 to {MAX_CLASSES} whole numbers from 1 to {MAX_REQUEST}"
    bounds = [
        getattr(constraint, side) for side in ("ge", "le") for constraint in metadata if hasattr(constraint, side)
    ]
    span = f" from {bounds[0]} to {bounds[1]}" if bounds else ""
    return {bool: "true, false", int: "a whole number" + span, float: "a number" + span, str: "text"}[annotation]
