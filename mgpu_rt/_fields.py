"""Makes dataclasses of JSON of unknown origin: each value must have the type of its field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mgpu_rt._text import shown

Made = TypeVar("Made")

#: For each type, as a field's annotation names it: returns True for a value of this type.
Types = Mapping[str, Callable[[Any], bool]]


def read(
    kind: type[Made], values: Any, types: Types, keys: Mapping[str, str] = {}, **made: Any
) -> Made:
    """Returns a dataclass whose fields have the values of these names. `keys` maps a field to the
    value's name, if this differs; `made` are fields that have their values already. Raises
    ValueError."""
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        key = keys.get(field.name, field.name)
        if field.name not in made:
            if not isinstance(values, dict) or key not in values:
                raise ValueError(f"'{key}' is missing")
            made[field.name] = checked(key, values[key], str(field.type), types)
    return kind(**made)


def checked(key: str, value: Any, wanted: str, types: Types) -> Any:
    """Returns a value of the type `wanted`. Raises ValueError."""
    name, _, optional = wanted.partition(" | ")
    if not (types[name](value) or (optional and value is None)):
        raise ValueError(f"'{key}' is {shown(repr(value))}, and has to be of the type {wanted}")
    return value
