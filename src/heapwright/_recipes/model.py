"""Tables as classes: the keys of a TOML table, with their types, bounds, defaults and descriptions.

pydantic validates the data of files against them and draws the JSON Schema. The classes are not pydantic's: an
exploration makes and compares tens of thousands of tables that need no validation, and importing pydantic takes 0.08 s
of processor time where loading a reference allocator takes 0.12 s. So it is imported for files alone.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        """Describe the parameters of the class to type checkers alone."""
        return lambda made: made


REQUIRED: Any = type("Required", (), {"__repr__": lambda _: "REQUIRED"})()
"""The default of a key that a table must have; nothing else is equal to it."""


class Conversion(NamedTuple):
    """Conversion of a value by a function before its validation, in an `Annotated`; ValueError refuses the value."""

    function: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.function, handler(source))


class AsSchema(NamedTuple):
    """JSON Schema of a value, in an `Annotated`."""

    schema: dict[str, Any]

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return self.schema


class Key:
    """A key of a table: its default, its bounds by their names in pydantic, and its description."""

    def __init__(self, default: Any, bounds: Mapping[str, Any], description: str | None, spelled: str) -> None:
        self.default, self.bounds, self.description, self.spelled = default, bounds, description, spelled
        self.metadata = (SimpleNamespace(**bounds),)
        self._declared = ("", "")

    def get_default(self) -> Any:
        """The default; `REQUIRED` if there is none."""
        return self.default

    @property
    def annotation(self) -> Any:
        """The type, with annotations."""
        annotation, module = self._declared
        return eval(annotation, vars(sys.modules[module]))

    def declared(self, name: str, annotation: str, module: str) -> Key:
        """The key as a class declares it."""
        made = Key(self.default, self.bounds, self.description, self.spelled or name)
        made._declared = (annotation, module)
        return made

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """In an `Annotated`: the bounds of a value, or the key that selects one of several tables."""
        from pydantic_core import core_schema

        if "discriminator" not in self.bounds:
            return {**handler(source), **self.bounds}
        key = self.bounds["discriminator"]
        tables = {table.defaults[key]: handler.generate_schema(table) for table in get_args(source)}
        return core_schema.tagged_union_schema(tables, key)


def field(
    *, default: Any = REQUIRED, description: str | None = None, spelled: str = "", **bounds: float | str | bool
) -> Any:
    """Declare a key: its default, its name in files, and bounds (ge, le, min_length, max_length, pattern, strict).

    `strict=False` accepts lists as tuples; `discriminator` names the key that selects one of several tables.
    """
    return Key(default, bounds, description, spelled)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False, field_specifiers=(field,))
class Table:
    """A TOML table, immutable and hashable.

    `model_validate` checks data: unknown keys are errors, and values are not converted. Calling the class checks no
    values.
    """

    __slots__ = ("__dict__", "__weakref__", "_hash")

    model_fields: ClassVar[dict[str, Key]] = {}
    """The keys by their names."""
    defaults: ClassVar[dict[str, Any]] = {}
    """Their defaults, `REQUIRED` for keys without one."""

    _values_of: ClassVar[Callable[[Mapping[str, Any]], Any]]

    def __init_subclass__(cls) -> None:
        keys = dict(cls.model_fields)
        for name, annotation in cls.__annotations__.items():
            if annotation.startswith("ClassVar"):
                continue
            value = vars(cls).get(name, REQUIRED)
            key = value if isinstance(value, Key) else Key(value, {}, None, "")
            keys[name] = key.declared(name, annotation, cls.__module__)
            if value is not REQUIRED:
                delattr(cls, name)
        cls.model_fields = keys
        cls.defaults = {name: key.default for name, key in keys.items()}
        cls._values_of = itemgetter(*keys)

    if not TYPE_CHECKING:

        def __init__(self, /, **values: Any) -> None:
            self.__dict__.update(self.defaults)
            self.__dict__.update(values)
            unknown = values.keys() - self.defaults.keys()
            missing = [key for key, value in self.__dict__.items() if value is REQUIRED]
            if unknown or missing:
                keys = ", ".join([*sorted(unknown), *missing])
                raise TypeError(f"{type(self).__name__}: unknown or missing: {keys}")

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
        return cls._made(pydantic_model(cls).model_validate(_as_data(data)).__dict__)

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
        """All keys with their values, or the keys of `include`; in mode "json" lists for tuples."""
        requested = set(self.model_fields if include is None else include) - (exclude or set())
        info = {name: _dumped(self.__dict__[name], mode) for name in self.model_fields if name in requested}
        if mode == "json":
            info |= {name: float(value) for name, value in info.items() if self.model_fields[name].annotation is float}
        return info

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        model = handler.generate_schema(pydantic_model(cls))
        return core_schema.no_info_after_validator_function(lambda read: cls._made(read.__dict__), model)

    if not TYPE_CHECKING:  # `dataclass_transform` describes them

        def __eq__(self, other: object) -> bool:
            if type(self) is not type(other):
                return NotImplemented
            mine, others = self.__dict__, other.__dict__  # which may hold more than the keys
            return mine == others or bool(self._values_of(mine) == self._values_of(others))

        def __hash__(self) -> int:  # computed once: a space asks for it several times a pool and recipe
            try:
                return self._hash
            except AttributeError:
                _keep_hash(self, hash(self._values_of(self.__dict__)))
                return self._hash

        def __getstate__(self) -> dict[str, Any]:
            return self.__dict__  # without the hash: that of a text differs between processes

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; model_copy(update={{{name!r}: ...}}) makes another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

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


def _as_data(value: Any) -> Any:
    """The data of a table, all through: what a file would hold."""
    if isinstance(value, Table):
        return {name: _as_data(value.__dict__[name]) for name in value.model_fields}
    if isinstance(value, Mapping):
        return {key: _as_data(item) for key, item in value.items()}
    return type(value)(map(_as_data, value)) if type(value) in (list, tuple) else value


_MODELS: dict[type[Table], type[BaseModel]] = {}


def pydantic_model(table: type[Table]) -> type[BaseModel]:
    """The pydantic model of a table's keys, for validation, error messages and JSON Schema."""
    if table not in _MODELS:
        _MODELS[table] = _model(table)
    return _MODELS[table]


def _model(table: type[Table]) -> type[BaseModel]:
    from pydantic import AliasChoices, ConfigDict, create_model
    from pydantic import Field as PydanticField

    config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True)
    fields: dict[str, Any] = {}
    for name, key in table.model_fields.items():
        options: dict[str, Any] = {**key.bounds, "description": key.description}
        if key.default is not REQUIRED:
            options["default"] = key.default
        if key.spelled != name:
            options["validation_alias"] = AliasChoices(key.spelled)
        fields[name] = (key.annotation, PydanticField(**options))
    return create_model(table.__name__, __config__=config, __doc__=table.__doc__, __module__=table.__module__, **fields)
