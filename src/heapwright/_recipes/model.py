"""Tables as classes: what keys a TOML table may have, their values with bounds and defaults.

What is plainly valid is read here. All else is left to a model of pydantic's that is made of the same keys: it reads
what is valid in another way, tells what is not, and draws the JSON Schema. So pydantic, which takes longer to import
than most commands take, is only imported where something is wrong.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from math import inf
from operator import itemgetter, or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        """Tells type checkers alone what the class's calls take."""
        return lambda made: made


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""The default of a key that has to be said; nothing else is equal to it."""


class Conversion(NamedTuple):
    """Conversion of a value by a function, in an `Annotated`; ValueError refuses the value."""

    function: Callable[[Any], Any]


class AsSchema(NamedTuple):
    """In an `Annotated`: what the JSON Schema says of it."""

    schema: dict[str, Any]


class Key:
    """A key of a table: its default, its bounds by their names in pydantic, and what it means."""

    def __init__(self, default: Any, bounds: Mapping[str, Any], description: str | None, spelled: str) -> None:
        self.default = default
        self.bounds = bounds
        self.description = description
        self.spelled = spelled
        self._annotation = ""
        self._module = ""

    def get_default(self) -> Any:
        """The default; `REQUIRED` where there is none."""
        return self.default

    @property
    def annotation(self) -> Any:
        """Its type."""
        return _evaluated(self._annotation, self._module)

    def declared(self, name: str, annotation: str, module: str) -> Key:
        """The key as a class declares it."""
        made = Key(self.default, self.bounds, self.description, self.spelled or name)
        made._annotation, made._module = annotation, module
        return made


def field(
    *, default: Any = REQUIRED, description: str | None = None, spelled: str = "", **bounds: float | str | bool
) -> Any:
    """Say of a key its default, how files spell it, and bounds: ge, le, min_length, max_length, pattern, strict.

    `strict=False` takes lists for tuples; `discriminator` names the key by which tables in a list are told apart.
    """
    return Key(default, bounds, description, spelled)


@lru_cache(maxsize=256)
def _evaluated(annotation: str, module: str) -> Any:
    return eval(annotation, vars(sys.modules[module]))


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(field,))
class Table:
    """A TOML table: keys that are not declared are errors, numbers are not taken for text. Immutable and hashable.

    Calling the class raises pydantic's `ValidationError` where a value is not valid.
    """

    __slots__ = ("__dict__", "__weakref__", "_hash")

    model_fields: ClassVar[dict[str, Key]] = {}
    """The keys by their names."""
    defaults: ClassVar[dict[str, Any]] = {}
    """Their defaults, `REQUIRED` for those that have none."""
    _readers: ClassVar[dict[str, tuple[str, Callable[[Any], Any]]]] = {}

    _values_of: ClassVar[Callable[[Mapping[str, Any]], Any]]

    def __init_subclass__(cls) -> None:
        keys = dict(cls.model_fields)
        for name, annotation in cls.__annotations__.items():
            if annotation.startswith("ClassVar"):
                continue
            given = vars(cls).get(name, REQUIRED)
            key = given if isinstance(given, Key) else Key(given, {}, None, "")
            keys[name] = key.declared(name, annotation, cls.__module__)
            if given is not REQUIRED:
                delattr(cls, name)
        cls.model_fields = keys
        cls.defaults = {name: key.default for name, key in keys.items()}
        cls._values_of = itemgetter(*keys)
        cls._readers = {}

    if not TYPE_CHECKING:

        def __init__(self, /, **data: Any) -> None:
            self.__dict__.update(self._read(data))
            self._check()

    def _check(self) -> None:
        """Raise pydantic's ValidationError where values are valid each for itself but not together."""

    @classmethod
    def _made(cls, values: Mapping[str, Any]) -> Self:
        """A table of values that are known to be valid, in order."""
        made = object.__new__(cls)
        made.__dict__.update(values)
        return made

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """The table of the data of a file, or the table itself. Raises pydantic's ValidationError."""
        if isinstance(data, cls):
            return data
        made = cls._made(cls._read(data))
        made._check()
        return made

    @classmethod
    def model_construct(cls, **values: Any) -> Self:
        """A table with these values, and defaults for all others; nothing is checked."""
        return cls._made({**cls.defaults, **values})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values for some keys, which are not checked."""
        values = copy.deepcopy(self.__dict__) if deep else self.__dict__
        return self._made({**values, **(update or {})})

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        include: set[str] | None = None,
        exclude: set[str] | None = None,
    ) -> dict[str, Any]:
        """All keys with their values, or those asked for; as JSON has them, lists for tuples."""
        requested = set(self.model_fields if include is None else include) - (exclude or set())
        info = {name: _dumped(self.__dict__[name], mode) for name in self.model_fields if name in requested}
        if mode == "json":
            info |= {name: float(value) for name, value in info.items() if self.model_fields[name].annotation is float}
        return info

    @classmethod
    def _read(cls, data: Any) -> dict[str, Any]:
        """The value of each key, in order. Raises pydantic's ValidationError."""
        try:
            return cls._read_plainly(data)
        except _UnsureError:
            return _read_by_pydantic(cls, data)

    @classmethod
    def _read_plainly(cls, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise _UnsureError
        results = dict(cls.defaults)
        for key, value in data.items():
            name, read = cls._readers.get(key) or _reader_of(cls, key)
            if name in data and name != key:
                raise _UnsureError
            results[name] = read(value)
        if REQUIRED in results.values():
            raise _UnsureError
        return results

    if not TYPE_CHECKING:  # which knows of these, and of what `__init__` takes

        def __eq__(self, other: object) -> bool:
            if type(self) is not type(other):
                return NotImplemented
            mine, others = self.__dict__, other.__dict__  # which may hold more than the keys
            return mine == others or bool(self._values_of(mine) == self._values_of(others))

        def __hash__(self) -> int:  # asked for several times a pool and recipe
            try:
                return self._hash
            except AttributeError:
                _keep_hash(self, hash(self._values_of(self.__dict__)))
                return self._hash

        def __getstate__(self) -> dict[str, Any]:
            return self.__dict__  # texts have other hashes elsewhere

    def __setattr__(self, name: str, value: Any) -> None:
        raise _frozen(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise _frozen(self, name, None)

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self.model_fields)
        return f"{type(self).__name__}({text})"


_keep_hash = vars(Table)["_hash"].__set__


def _dumped(value: Any, mode: Literal["python", "json"]) -> Any:
    if isinstance(value, Table):
        return value.model_dump(mode=mode)
    if isinstance(value, tuple):
        return (list if mode == "json" else tuple)(_dumped(item, mode) for item in value)
    return value


# ---- what is plainly valid -------------------------------------------------------------------------------------------


class _UnsureError(Exception):
    """The value may be valid, but not plainly."""


def _reader_of(table: type[Table], spelled: str) -> tuple[str, Callable[[Any], Any]]:
    """The name of a key, and what reads its value or raises `_UnsureError`."""
    for name, key in table.model_fields.items():
        if spelled in (name, key.spelled):
            result = table._readers[spelled] = (name, _reader(key.annotation, key.bounds))
            return result
    raise _UnsureError


def _reader(annotation: Any, bounds: Mapping[str, Any]) -> Callable[[Any], Any]:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(parts[0], parts[1:], bounds)
    if origin in (Union, UnionType):
        return _any_of([_reader(part, bounds) for part in parts])
    if origin is Literal:
        return _one_of(frozenset((type(value), value) for value in parts))
    if origin is list or (origin is tuple and parts[1:] == (...,)):
        return _many(origin, _reader(parts[0], {}), bounds)
    if annotation in (int, float):
        return _number(annotation, bounds)
    if annotation in (bool, str, NoneType):
        return _plain(annotation, bounds)
    return _tables(annotation) if isinstance(annotation, type) and issubclass(annotation, Table) else _unsure


def _unsure(value: Any) -> Any:
    raise _UnsureError


def _annotated(annotation: Any, said: tuple[Any, ...], bounds: Mapping[str, Any]) -> Callable[[Any], Any]:
    own = [item.bounds for item in said if isinstance(item, Key)]
    read = _reader(annotation, reduce(lambda all, item: {**all, **item}, own, dict(bounds)))
    before = [item.function for item in said if isinstance(item, Conversion)]

    def read_after(value: Any) -> Any:
        try:
            for function in before:
                value = function(value)
        except ValueError:
            raise _UnsureError from None
        return read(value)

    return read_after if before else read


def _any_of(readers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        for reader in readers:
            try:
                return reader(value)
            except _UnsureError:
                pass
        raise _UnsureError

    return read


def _one_of(allowed: frozenset[tuple[type, Any]]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in (int, str) or (type(value), value) not in allowed:
            raise _UnsureError
        return value

    return read


def _number(kind: type[int | float], bounds: Mapping[str, Any]) -> Callable[[Any], Any]:
    least, most = bounds.get("ge", -inf), bounds.get("le", inf)
    kinds = (int,) if kind is int else (int, float)

    def read(value: Any) -> Any:
        if type(value) not in kinds or not least <= value <= most:
            raise _UnsureError
        return kind(value)

    return read


def _plain(kind: type, bounds: Mapping[str, Any]) -> Callable[[Any], Any]:
    least = bounds.get("min_length", 0)

    def read(value: Any) -> Any:
        if type(value) is not kind or (isinstance(value, str) and len(value) < least):
            raise _UnsureError
        return value

    return _unsure if "pattern" in bounds else read


def _many(kind: type, item: Callable[[Any], Any], bounds: Mapping[str, Any]) -> Callable[[Any], Any]:
    kinds = (kind,) if bounds.get("strict", True) else (list, tuple)
    least, most = bounds.get("min_length", 0), bounds.get("max_length", inf)

    def read(value: Any) -> Any:
        if type(value) not in kinds or not least <= len(value) <= most:
            raise _UnsureError
        return kind(map(item, value))

    return read


def _tables(table: type[Table]) -> Callable[[Any], Any]:
    """Reads a table of a list in which `kind` tells them apart."""

    def read(value: Any) -> Any:
        if type(value) is table:
            return value
        if type(value) is not dict or value.get("kind") != table.defaults["kind"]:
            raise _UnsureError
        return table._made(table._read_plainly(value))

    return read


# ---- what is not -----------------------------------------------------------------------------------------------------

_TABLES: dict[type, type[Table]] = {}
"""The table of each model of pydantic's."""


_MODELS: dict[type[Table], type[BaseModel]] = {}


def by_pydantic(table: type[Table]) -> type[BaseModel]:
    """The model of a table's keys."""
    if table not in _MODELS:
        _MODELS[table] = _model(table)
        _TABLES[_MODELS[table]] = table
    return _MODELS[table]


def _model(table: type[Table]) -> type[BaseModel]:
    from pydantic import AliasChoices, ConfigDict, create_model
    from pydantic import Field as PydanticField

    config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True)
    fields: dict[str, Any] = {}
    for name, key in table.model_fields.items():
        said: dict[str, Any] = {**key.bounds, "description": key.description}
        if key.default is not REQUIRED:
            said["default"] = key.default
        if key.spelled != name:
            said["validation_alias"] = AliasChoices(key.spelled)
        fields[name] = (_for_pydantic(key.annotation), PydanticField(**said))
    return create_model(table.__name__, __config__=config, __doc__=table.__doc__, __module__=table.__module__, **fields)


def _for_pydantic(annotation: Any) -> Any:
    from pydantic import BeforeValidator, WithJsonSchema
    from pydantic import Field as PydanticField

    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        said = [_for_pydantic(parts[0])]
        for part in parts[1:]:
            if isinstance(part, Conversion):
                said.append(BeforeValidator(part.function))
            elif isinstance(part, AsSchema):
                said.append(WithJsonSchema(part.schema))
            else:
                said.append(PydanticField(**part.bounds))
        return Annotated[tuple(said)]
    if origin in (Union, UnionType):
        return reduce(or_, map(_for_pydantic, parts))
    if origin in (tuple, list):
        return origin[tuple(map(_for_pydantic, parts))]
    return by_pydantic(annotation) if isinstance(annotation, type) and issubclass(annotation, Table) else annotation


def _read_by_pydantic(table: type[Table], data: Any) -> dict[str, Any]:
    info = {key: _as_data(value) for key, value in data.items()} if isinstance(data, Mapping) else data
    return _values(table, by_pydantic(table).model_validate(info))


def _as_data(value: Any) -> Any:
    if isinstance(value, Table):
        return {name: _as_data(value.__dict__[name]) for name in value.model_fields}
    return type(value)(map(_as_data, value)) if type(value) in (list, tuple) else value


def _values(table: type[Table], read: BaseModel) -> dict[str, Any]:
    return {name: _as_table(getattr(read, name)) for name in table.model_fields}


def _as_table(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_as_table, value))
    table = _TABLES.get(type(value))
    return value if table is None else table._made(_values(table, value))


def _frozen(table: Table, name: str, value: Any) -> ValidationError:
    from pydantic_core import ValidationError

    wrong: Any = {"type": "frozen_instance", "loc": (name,), "input": value}
    return ValidationError.from_exception_data(type(table).__name__, [wrong])
