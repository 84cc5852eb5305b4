"""The parts of scenarios that groups of all newer protocols have: topics with ids, configs, records.

Topics have short names: t (4 partitions), u (2), and those that the scenario creates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from typing import TYPE_CHECKING, Any

from koordinator.wire.errors import Error
from koordinator.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.offsets_topic import read_key, read_value
from koordinator.wire.primitives import ZERO_UUID
from scenarios.requests import Absent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from scenarios.player import Player

GROUP = 32
"""The resource type of groups in requests about configs."""

TOPIC_IDS_SINCE = 10
"""The first version of Metadata with topic ids."""

UNKNOWN_ID = type(ZERO_UUID)(int=1 << 64)
"""The id of no topic."""

LIMIT_S = 60

Given = dict[str, list[int]]
"""Partitions by topic name."""


class ModernMembers(ABC):
    """Members of the play's group, and requests about it.

    Epochs of scenarios are those of 4.3, where new groups begin with epoch 1; those of a broker are lower by `_shift`.
    """

    _shift = 0

    def __init__(self, play: Player) -> None:
        self._play = play
        self._real = {"t": play.t, "u": play.u}
        self._ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}
        self._written = 0
        self._learn("t", "u")

    # -- topics ------------------------------------------------------------------------------------------------

    @abstractmethod
    def is_assigned(self, topic: str, group: str) -> bool:
        """Return whether the first member of another group is assigned partitions of a topic."""

    def new_topic(
        self, name: str, partitions: int, *, suffix: str | None = None, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic of this play under a short name; `suffix` follows the group's name in the real one."""
        self.adopt(name, self._play.new_topic(partitions, configs, suffix=suffix))

    def adopt(self, name: str, real: str) -> None:
        """Give an existing topic a short name, and wait until the coordinator knows it."""
        self._real[name] = real
        self._learn(name)
        limit = self._play.target.seconds + LIMIT_S
        # the coordinator of a broker may learn of it later than Metadata
        for number in count():
            if self.is_assigned(name, f"{self._play.g}.{name}.{number}"):
                return
            assert self._play.target.seconds < limit, f"the coordinator does not know {name}"
            self._play.wait(0.1)

    def planned_topic(self, name: str, suffix: str) -> None:
        """Name a topic that does not exist yet."""
        self._real[name] = f"{self._play.g}{suffix}"

    def delete_topic(self, name: str) -> None:
        """Delete a topic of this play."""
        self._play.delete_topic(self._real[name])

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        row = CreatePartitionsTopic(name=self._real[name], count=partitions, assignments=None)
        answer = self._play.slowly(CreatePartitionsRequest(topics=(row,), timeout_ms=LIMIT_S * 1000), 3)
        assert [each.error_code for each in answer.results] == [Error.NONE], answer

    def _learn(self, *names: str) -> None:
        wanted = tuple(MetadataRequestTopic(name=self._real[name]) for name in names)
        answer = self._play.ask(MetadataRequest(topics=wanted), TOPIC_IDS_SINCE).unrecorded()
        short = {real: name for name, real in self._real.items()}
        for row in answer.topics:
            name = short[row.name]
            self._ids[name], self._names[row.topic_id] = row.topic_id, name
            self._play.transcript.name(str(row.topic_id), name)

    def id_of(self, name: str) -> UUID:
        """Return the id of a topic."""
        return self._ids[name]

    def _known_ids(self, names: Iterable[str]) -> dict[str, UUID]:
        """Return the ids of topics by their real names."""
        return {self._real.get(name, name): self._ids.get(name, UNKNOWN_ID) for name in names}

    def named(self, rows: Any) -> Given:
        """Return the partitions of a message by topic names, sorted; ids of unknown topics as they are."""
        return {self._names.get(row.topic_id, str(row.topic_id)): sorted(row.partitions) for row in rows}

    # -- epochs ------------------------------------------------------------------------------------------------

    def raw(self, epoch: int) -> int:
        """Return an epoch as the broker knows it."""
        return epoch - self._shift if epoch > 0 else epoch

    def _shown(self, epoch: int) -> int:
        return epoch + self._shift if epoch >= 0 else epoch

    def emptied_target(self, epoch: int) -> int:
        """Return the epoch of the target that the only member leaves at an epoch: since 4.4 that of the group."""
        return epoch + 1 if self._play.since("4.4.0") else epoch

    # -- configs -----------------------------------------------------------------------------------------------

    def configure(self, **configs: object) -> int:
        """Set configs of the group, their names with _ for the dots; return the error once the coordinator has them."""
        play = self._play
        if not play.since("4.0.0"):
            raise Absent("IncrementalAlterConfigs of GROUP", 1, play.target.release)
        values = {name.replace("_", "."): str(value) for name, value in configs.items()}
        rows = tuple(AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items())
        error = 0
        # DescribeConfigs shows a change before the coordinator has it, and a second one after it has the first
        for group in (play.g, f"{play.g}.later"):
            resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=rows)
            request, is_own = IncrementalAlterConfigsRequest(resources=(resource,)), group == play.g
            answer = play.slowly(request, 1, recorded=is_own)
            error = answer.responses[0].error_code if is_own else error
            for name, value in values.items() if not error else ():
                play.wait_config(GROUP, group, name, value)
        return error

    def needs_newer_configs(self) -> None:
        """Raise Absent where groups have no configs for intervals of targets, limits of records, and renewals."""
        if not self._play.since("4.3.0"):
            raise Absent("IncrementalAlterConfigs of all configs of GROUP", 1, self._play.target.release)

    def configs(self) -> dict[str, tuple[str | None, int]]:
        """Return value and source of each config of the group."""
        resource = DescribeConfigsResource(resource_type=GROUP, resource_name=self._play.g, configuration_keys=None)
        # a broker has configs of share and streams groups besides
        (row,) = self._play.ask(DescribeConfigsRequest(resources=(resource,)), 4).unrecorded().results
        assert row.error_code == 0, row
        return {each.name: (each.value, each.config_source) for each in row.configs}

    # -- records -----------------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Begin to look at records from here on."""
        self._written = len(self._play.records())

    def written(self) -> list[int]:
        """Return the types of the records since the mark, negative for tombstones."""
        return [
            int.from_bytes(key[:2], "big") * (-1 if value is None else 1)
            for key, value in self._play.records()[self._written :]
        ]

    def await_written(self, *types: int) -> None:
        """Wait until the records since the mark have these types, if answers do not wait for them."""
        self._play.wait_until(f"{types} are written", lambda: self.written() == [*types])

    def values(self) -> list[Any]:
        """Return the values of the records since the mark."""
        found = []
        for key, value in self._play.records()[self._written :]:
            read = read_key(key)
            assert read is not None
            found.append(value and read_value(read, value))
        return found
