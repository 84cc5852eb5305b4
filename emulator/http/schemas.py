"""What requests may say, as pydantic models. Those of operations are made from the operations' own signatures."""

from __future__ import annotations

import collections.abc
import inspect
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..config.options import Interface, options_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.options import Option, Options
    from .routes import Route

NAMES = {name: getattr(collections.abc, name) for name in collections.abc.__all__} | {"Any": Any, "Literal": Literal}
"""What annotations of operations may name without importing it at run time."""

OURS = ("self", "now")
"""Arguments that nobody gives."""

IN_PATH = re.compile(r"{(\w+)}")


class Arguments(BaseModel):
    """What a request says, by name; nothing that is not known."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class ClusterRequest(Arguments):
    """The part of a request for a cluster that is not an option of the cluster."""

    id: str | None = Field(None, min_length=1, description="Id of the cluster in paths; a free id by default.")

    def options(self, defaults: Options) -> Options:
        """Return the options of this request; `defaults` has those of every cluster of the process."""
        return replace(defaults, **{name: getattr(self, name) for name in self.model_fields_set if name != "id"})


def _field(option: Option) -> Any:  # noqa: ANN401 - type and pydantic field
    default = option.default() if option.is_mapping else option.default
    bounds: dict[str, Any] = {"ge": option.lowest, "le": option.highest} if option.is_integer else {}
    return option.type, Field(default, description=option.help, **bounds)


NewCluster = create_model(
    "NewCluster",
    __base__=ClusterRequest,
    __doc__="A cluster to create. The options are those of `koordinator.Emulator`, except for files.",
    **{option.name: _field(option) for option in options_of(Interface.HTTP)},
)


def arguments_of(operation: Callable[..., Any], route: Route) -> tuple[type[Arguments], type[Arguments]]:
    """The arguments of an operation that stand in the path of its route, and those that are given beside it."""
    hints = _hints(operation)
    in_path = set(IN_PATH.findall(route.path))
    fields: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default)
        for each in inspect.signature(operation).parameters.values()
        if each.name not in OURS
    }
    if missing := in_path - fields.keys():
        raise TypeError(f"{route.operation} has no argument {', '.join(sorted(missing))}, which {route.path} names")
    name = route.operation.title().replace(".", "").replace("_", "")
    given = {name: field for name, field in fields.items() if name not in in_path}
    return (
        create_model(f"{name}Path", __base__=Arguments, **{each: fields[each] for each in in_path}),
        create_model(name, __base__=Arguments, **given),
    )


def _hints(operation: Callable[..., Any]) -> dict[str, Any]:
    """The types of the arguments; what it gives may be named by what is only there for type checkers."""
    given = {name: said for name, said in inspect.get_annotations(operation).items() if name != "return"}
    holder = type("Arguments", (), {"__annotations__": given})
    return get_type_hints(holder, globalns=vars(inspect.getmodule(operation)), localns=NAMES)


def summary_of(operation: Callable[..., Any]) -> tuple[str, str]:
    """The first sentence of what is said of an operation, and all of it."""
    said = inspect.getdoc(operation) or ""
    return said.partition("\n")[0], said
