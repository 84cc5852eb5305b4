"""Koordinator: a Kafka group coordinator for tests.

`Emulator` starts a cluster inside this process and returns a `Cluster`, which returns a `Group` for each consumer
group. `Simulation` returns the same `Cluster` on virtual time, without sockets. Everything that a test types, creates
or catches is exported here. These names are loaded on first use, so that importing `koordinator` alone, as pytest does
for its plugins, is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .imports import collections_paused
from .version import __version__

if TYPE_CHECKING:
    from koordinator.emulator.config.seed_record import SeedRecord
    from koordinator.emulator.config.value_rules import InvalidSetting
    from koordinator.emulator.control.faults.actions import Action, RuleError
    from koordinator.emulator.control.record_inputs import RecordLike
    from koordinator.emulator.control.results import (
        Fired,
        GroupInfo,
        Member,
        PartitionInfo,
        PendingOffset,
        ProducerInfo,
        PuppetInfo,
        RecordsInFlight,
        Request,
        Right,
        SharePosition,
        SilentMember,
        Timer,
        TransactionInfo,
    )
    from koordinator.emulator.control.time.durations import InvalidDuration
    from koordinator.emulator.core.data.direct_records import StoredRecord
    from koordinator.emulator.core.refusal import RefusedError
    from koordinator.emulator.formats.json_lines import LineError
    from koordinator.emulator.storage.data_dir import DataDirRefused
    from koordinator.emulator.verify.conformance import Verdict

    from . import aio, faults, trace
    from .handles.checks import ExpectedRebalance, GroupTimeout
    from .handles.clocks import Duration
    from .handles.cluster import Cluster
    from .handles.docker import KoordinatorContainer, NoEngine
    from .handles.emulator import Emulator
    from .handles.errors import BlockingCallInLoop, ClusterStopped, EmulatorOnly, InvalidArgument, KoordinatorTimeout
    from .handles.faults import Hold, HoldTimeout, Lockstep, Rule
    from .handles.group import Group
    from .handles.names import GroupLike, MemberLike, NodeLike, TopicLike
    from .handles.nodes import Node
    from .handles.puppets import Puppet, PuppetTimeout
    from .handles.remote import Remote
    from .handles.session import ClusterFactory, SessionCluster
    from .handles.simulation import Simulation
    from .handles.topics import Topic
    from .handles.transactions import PuppetProducer, Transaction, TransactionTimeout
    from .trace import Event, Rebalance, TraceError

__all__ = [
    "Action",
    "BlockingCallInLoop",
    "Cluster",
    "ClusterFactory",
    "ClusterStopped",
    "DataDirRefused",
    "Duration",
    "Emulator",
    "EmulatorOnly",
    "Event",
    "ExpectedRebalance",
    "Fired",
    "Group",
    "GroupInfo",
    "GroupLike",
    "GroupTimeout",
    "Hold",
    "HoldTimeout",
    "InvalidArgument",
    "InvalidDuration",
    "InvalidSetting",
    "KoordinatorContainer",
    "KoordinatorTimeout",
    "LineError",
    "Lockstep",
    "Member",
    "MemberLike",
    "NoEngine",
    "Node",
    "NodeLike",
    "PartitionInfo",
    "PendingOffset",
    "ProducerInfo",
    "Puppet",
    "PuppetInfo",
    "PuppetProducer",
    "PuppetTimeout",
    "Rebalance",
    "RecordLike",
    "RecordsInFlight",
    "RefusedError",
    "Remote",
    "Request",
    "Right",
    "Rule",
    "RuleError",
    "SeedRecord",
    "SessionCluster",
    "SharePosition",
    "SilentMember",
    "Simulation",
    "StoredRecord",
    "Timer",
    "Topic",
    "TopicLike",
    "TraceError",
    "Transaction",
    "TransactionInfo",
    "TransactionTimeout",
    "Verdict",
    "__version__",
    "aio",
    "faults",
    "trace",
]

_NAMES = {
    "emulator.config.seed_record": "SeedRecord",
    "emulator.config.settings": "InvalidSetting",
    "emulator.control.faults.actions": "Action RuleError",
    "emulator.control.record_inputs": "RecordLike",
    "emulator.control.results": (
        "Fired GroupInfo Member PartitionInfo PendingOffset ProducerInfo PuppetInfo RecordsInFlight Request Right"
        " SharePosition SilentMember Timer TransactionInfo"
    ),
    "emulator.control.time.durations": "InvalidDuration",
    "emulator.core.data.direct_records": "StoredRecord",
    "emulator.core.refusal": "RefusedError",
    "emulator.formats.json_lines": "LineError",
    "emulator.storage.data_dir": "DataDirRefused",
    "emulator.verify.conformance": "Verdict",
    "handles.checks": "ExpectedRebalance GroupTimeout",
    "handles.clocks": "Duration",
    "handles.cluster": "Cluster",
    "handles.docker": "KoordinatorContainer NoEngine",
    "handles.emulator": "Emulator",
    "handles.errors": "BlockingCallInLoop ClusterStopped EmulatorOnly InvalidArgument KoordinatorTimeout",
    "handles.faults": "Hold HoldTimeout Lockstep Rule",
    "handles.group": "Group",
    "handles.names": "GroupLike MemberLike NodeLike TopicLike",
    "handles.nodes": "Node",
    "handles.puppets": "Puppet PuppetTimeout",
    "handles.remote": "Remote",
    "handles.session": "ClusterFactory SessionCluster",
    "handles.simulation": "Simulation",
    "handles.topics": "Topic",
    "handles.transactions": "PuppetProducer Transaction TransactionTimeout",
    "trace": "Event Rebalance TraceError",
}
"""The names of each module."""

_EXTRAS = {"handles.docker": "docker", "handles.remote": "control"}
"""The extra that a module needs."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a name on first use. Raises ImportError with the remedy if the extra of a name is not installed."""
    if name in ("aio", "faults", "trace"):
        return import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    try:
        with collections_paused():
            return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if module not in _EXTRAS:
            raise
        from koordinator.emulator.config.install_hint import install_hint  # noqa: PLC0415 - few programs need it

        hint = install_hint(_EXTRAS[module])
        raise ImportError(f"{__name__}.{name} needs {error.name}, which is not installed: {hint}") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
