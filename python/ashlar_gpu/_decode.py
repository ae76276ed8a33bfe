"""JSON to the frozen dataclasses of ashlar_gpu.results, by their annotations.

A key that a class does not have is left out (`answer.json` has it); one that the JSON lacks is an Error: program and
package are of different versions.
"""

import dataclasses
import functools
from typing import Any, Dict, Literal, Type, TypeVar, Union, get_args, get_origin, get_type_hints

from ashlar_gpu._errors import Error

T = TypeVar("T")


@functools.lru_cache(maxsize=None)
def _hints(kind: Any) -> Dict[str, Any]:
    return get_type_hints(kind)


def decode(kind: Type[T], value: Dict[str, Any], **given: Any) -> T:
    """A value of `kind`; `given` are fields that the JSON does not have."""
    made: T = _decode(kind, value, given)
    return made


def _decode(kind: Any, value: Dict[str, Any], given: Dict[str, Any]) -> Any:
    hints, fields = _hints(kind), dict(given)
    for field in dataclasses.fields(kind):
        if field.name in given:
            continue
        if field.name not in value:
            raise Error(f"the program's answer has no '{field.name}': program and package are of different versions, "
                        "install both from one wheel")
        fields[field.name] = _value(hints[field.name], value[field.name])
    return kind(**fields)


def _value(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if value is None or origin is Literal:
        return value
    if origin is Union:
        (inner,) = [one for one in get_args(kind) if one is not type(None)]
        return _value(inner, value)
    if origin is tuple:
        return tuple(_value(get_args(kind)[0], one) for one in value)
    if not dataclasses.is_dataclass(kind):
        return value
    return _decode(kind, value, _given(kind))


def _given(kind: Any) -> Dict[str, Any]:
    """What an answer inside another one has for the fields that are not of the JSON; the outer one fills them in."""
    from ashlar_gpu._answer import ExplanationAnswer

    return {"text": "", "json": {}, "others": ()} if issubclass(kind, ExplanationAnswer) else {}
