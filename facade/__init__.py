"""Koordinator: a Kafka group coordinator to test consumers against.

`Emulator` starts a cluster inside this process and gives a `Cluster`, which gives a `Group` for each consumer group.
`Simulation` gives the same `Cluster` on virtual time, without sockets.
They are loaded when first used, so that importing `koordinator` alone (as pytest does for its plugins) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from .handles.cluster import Cluster
    from .handles.emulator import Emulator
    from .handles.group import Group
    from .handles.simulation import Simulation

__all__ = ["Cluster", "Emulator", "Group", "Simulation", "__version__"]

_HOMES = {
    "Cluster": "koordinator.handles.cluster",
    "Emulator": "koordinator.handles.emulator",
    "Group": "koordinator.handles.group",
    "Simulation": "koordinator.handles.simulation",
}


def __getattr__(name: str) -> object:
    """`Emulator` and the others, from where they live."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
