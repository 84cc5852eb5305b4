"""What records say of a group changes through a `Journal` alone, in every test.

A handler decides on records. If it wrote what they say by itself, a failed write would not take it back, and loading
would not find it. Kafka: `CoordinatorRuntime`, whose shards change in `replay` only.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

from koordinator.emulator.core.groups.modern.group import ModernGroup
from koordinator.emulator.core.journal import Journal, JournaledTable

RECORDED = frozenset(
    {
        *("epoch", "metadata_hash", "target_epoch", "target_time"),
        *("topics", "state_partitions", "has_state_record", "initializing_since"),
        *("topology", "validated_topology_epoch", "assignment_configs"),
    }
)
"""The attributes of groups that records describe, besides the tables."""

SOFT = frozenset({"configured", "refined", "_slots"})
"""The attributes in no record that a failed write gives back all the same."""

_TABLE_CHANGES = (
    *("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"),
    *("put_back", "remove"),
)


class _Open(threading.local):
    """The number of changes that a journal makes, in this thread."""

    count = 0


def install() -> None:
    """Refuse changes of recorded state outside a journal, in all tests of this process."""
    open_journals = _Open()

    def journaling(change: Any) -> Any:
        @wraps(change)
        def counted(journal: Journal, *args: Any) -> Any:
            if change.__name__ == "set" and isinstance(args[0], ModernGroup):
                assert args[1] in RECORDED | SOFT, f"{args[1]} of a group is in a journal: name it in {__name__}"
            open_journals.count += 1
            try:
                return change(journal, *args)
            finally:
                open_journals.count -= 1

        return counted

    def guarded(change: Any) -> Any:
        @wraps(change)
        def checked(table: JournaledTable[Any, Any], *args: Any, **fields: Any) -> Any:
            assert open_journals.count, f"{change.__name__} of a recorded table outside a journal"
            return change(table, *args, **fields)

        return checked

    def set_attribute(group: Any, name: str, value: Any) -> None:
        is_first = name not in vars(group)
        assert open_journals.count or is_first or name not in RECORDED, f"{name} of a group changes outside a journal"
        object.__setattr__(group, name, value)

    for name in ("put", "pop", "set", "revert"):
        setattr(Journal, name, journaling(getattr(Journal, name)))
    for name in _TABLE_CHANGES:
        setattr(JournaledTable, name, guarded(getattr(JournaledTable, name)))
    # type checkers take a method for constant
    setattr(ModernGroup, "__setattr__", set_attribute)  # noqa: B010
