"""Koordinator: a Kafka group coordinator for tests.

`Emulator` starts a cluster inside this process and returns a `Cluster`, which returns a `Group` for each consumer
group. `Simulation` returns the same `Cluster` on virtual time, without sockets. These classes are loaded on first use,
so that importing `koordinator` alone, as pytest does for its plugins, is cheap.
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

_MODULES = {
    "Cluster": "koordinator.handles.cluster",
    "Emulator": "koordinator.handles.emulator",
    "Group": "koordinator.handles.group",
    "Simulation": "koordinator.handles.simulation",
}


def __getattr__(name: str) -> object:
    """Import a class on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
