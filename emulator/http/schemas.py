"""Pydantic models of requests, built from the signatures of operations, and the JSON schemas of their results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from ..config.options import Interface, options_of
from ..control import operations
from ..core.refusal import RefusedError
from ..server.cluster_info import ClusterInfo
from .plain import BASE64, adapter_of
from .problems import STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import core_schema

    from ..config.options import Option, Options
    from .routes import Route

COMPONENTS = "#/components/schemas/{model}"

IN_PATH = re.compile(r"{(\w+)}")


RAISES = re.compile(r"\bRaises?(\s+)(\w+)(?:\s+\(an?\s\w+\))?")
"""What a docstring says of an error."""

STATUS_BY_NAME = {kind.__name__: status.value for kind, status in STATUSES.items()} | {
    RefusedError.__name__: STATUSES[ValueError].value,
}
"""The statuses that stand for the errors of operations in the documentation."""


class Arguments(BaseModel):
    """The arguments of a request; unknown names are refused."""

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


class Schema(GenerateJsonSchema):
    """JSON schemas in which bytes are base64 objects, and objects have no other properties."""

    def bytes_schema(self, schema: core_schema.BytesSchema) -> dict[str, Any]:
        """Return the schema of bytes."""
        del schema
        encoded = {"type": "string", "contentEncoding": "base64"}
        return {"type": "object", "properties": {BASE64: encoded}, "required": [BASE64], "additionalProperties": False}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
        """Return the schema of a dataclass."""
        return {**super().dataclass_schema(schema), "additionalProperties": False}


class ResultSchema(Schema):
    """JSON schemas of results: every field is present."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,  # noqa: FBT001 - pydantic's signature
    ) -> bool:
        """Return whether a field is always present."""
        del field, total
        return True


def arguments_of(route: Route) -> tuple[type[Arguments], type[Arguments]]:
    """Return the models of a route's arguments: those in the path, and those in the query or the body."""
    arguments = operations.arguments(route.operation)
    in_path = set(IN_PATH.findall(route.path))
    if missing := in_path - arguments.keys():
        raise TypeError(f"{route.operation} has no argument {', '.join(sorted(missing))}, which {route.path} names")
    name = route.operation.title().replace(".", "").replace("_", "")
    others = {each: (_of_json(hint), default) for each, (hint, default) in arguments.items() if each not in in_path}
    return (
        create_model(f"{name}Path", __base__=Arguments, **{each: arguments[each] for each in in_path}),  # type: ignore[call-overload]
        create_model(name, __base__=Arguments, **others),  # type: ignore[call-overload]
    )


def _of_json(hint: Any) -> Any:  # noqa: ANN401 - any type
    """Return the type of an argument whose tuples are JSON arrays, which a strict model would refuse."""
    inner = get_args(hint)
    if get_origin(hint) is tuple:
        return Annotated[hint, BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
    return get_origin(hint)[_of_json(inner[0])] if get_origin(hint) is Sequence else hint


def request_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a request."""
    return model.model_json_schema(schema_generator=Schema)


def result_schemas(names: Iterable[str]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the JSON schema of each operation's result, of `cluster` and `clusters`, and the shared components."""
    adapters: dict[str, TypeAdapter[Any]] = {name: adapter_of(name) for name in names}
    adapters |= {"cluster": TypeAdapter(ClusterInfo), "clusters": TypeAdapter(list[ClusterInfo])}
    inputs = [(name, "serialization", adapter) for name, adapter in adapters.items()]
    schemas, shared = TypeAdapter.json_schemas(
        inputs,  # type: ignore[arg-type]
        ref_template=COMPONENTS,
        schema_generator=ResultSchema,
    )
    return {name: schema for (name, _), schema in schemas.items()}, shared.get("$defs", {})


def summary_of(operation: str) -> tuple[str, str]:
    """Return the first line of an operation's docstring, and the whole docstring, with statuses instead of errors."""
    text = inspect.getdoc(operations.OPERATIONS[operation]) or ""
    text = RAISES.sub(lambda raises: f"Fails with{raises[1]}{STATUS_BY_NAME[raises[2]]}", text)
    text = re.sub(r"\bNone\b", "null", text)
    return text.partition("\n")[0], text
