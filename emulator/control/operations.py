"""The table of operations: every public method of a part, by its name `part.method`, such as `groups.describe`.

An operation takes the node's time `now` in milliseconds, then plain data by keyword, and returns a dataclass of
`results` or plain data. Long operations return `Steps`; those that open or close sockets are
coroutines and take no time. Arguments and results are declared once, by the method's annotations.
"""

from __future__ import annotations

import collections.abc
import inspect
import typing
from typing import TYPE_CHECKING, Any

from ..broker.steps import Steps
from .acls import Acls
from .credentials import Credentials
from .faults.faults import Faults
from .faults.holds import Holds
from .inspect.events import Events
from .inspect.groups import Groups
from .inspect.topics import Topics
from .inspect.verification import Verify
from .nodes import Nodes
from .puppets.operations import Puppets
from .shares import Shares
from .snapshots.operations import Snapshots
from .time.clocks import Clocks
from .transactions.operations import Transactions
from .transactions.producers import PuppetProducers
from .verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PARTS: Mapping[str, type] = {
    "acls": Acls,
    "clocks": Clocks,
    "credentials": Credentials,
    "events": Events,
    "faults": Faults,
    "groups": Groups,
    "holds": Holds,
    "nodes": Nodes,
    "producers": PuppetProducers,
    "puppets": Puppets,
    "shares": Shares,
    "snapshots": Snapshots,
    "topics": Topics,
    "transactions": Transactions,
    "verbs": Verbs,
    "verify": Verify,
}
"""The parts of a cluster's control, by name."""

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    f"{part}.{name}": function
    for part, kind in PARTS.items()
    for name, function in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_")
}
"""Every operation, as the function of its class."""

NAMES: Mapping[Callable[..., Any], str] = {function: name for name, function in OPERATIONS.items()}
"""The name of each operation."""

ASYNC = frozenset(name for name, function in OPERATIONS.items() if inspect.iscoroutinefunction(function))
"""The operations that open or close sockets."""

STEPWISE = frozenset(name for name, function in OPERATIONS.items() if inspect.isgeneratorfunction(function))
"""The operations that return `Steps`."""

_NOT_GIVEN = ("self", "now", "_now")

_NAMESPACE = vars(collections.abc) | {"Any": Any, "Steps": Steps}
"""Names of annotations that the parts import for type checkers only."""


def arguments(name: str) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of each argument of an operation; the default is `...` if there is none."""
    function = OPERATIONS[name]
    hints = _hints(function)
    return {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default)
        for each in inspect.signature(function).parameters.values()
        if each.name not in _NOT_GIVEN
    }


def result(name: str) -> Any:  # noqa: ANN401 - a type, or a generic alias
    """Return the type of an operation's result."""
    hint = _hints(OPERATIONS[name])["return"]
    return typing.get_args(hint)[2] if typing.get_origin(hint) is collections.abc.Generator else hint


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    # get_type_hints merges its namespaces the same way, but a method called `list` would hide the builtin
    return typing.get_type_hints(function, localns=dict(_NAMESPACE))
