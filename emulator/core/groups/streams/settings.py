"""The settings of a streams group: its own, or those of the brokers (KIP-1071; Kafka: `GroupConfig`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.values import value

from ...data.group_configs import group_text, group_value
from ...dialect import dialect_of

if TYPE_CHECKING:
    from ...cluster import ClusterState

STANDBY_REPLICAS = "num.standby.replicas"
"""The name of the number of standby replicas in the settings of the assignor."""

RACK_AWARE_TAGS = "rack.aware.assignment.tags"
"""The name of the tags that clients have to have, in these settings."""


@value
class StreamsSettings:
    """The settings of one streams group. Properties are not cached: configs may change."""

    cluster: ClusterState
    group_id: str

    @property
    def initial_rebalance_delay_ms(self) -> int:
        """The time for which an empty group waits for more members before its first target, in ms."""
        return self._number("streams.initial.rebalance.delay.ms")

    @property
    def num_standby_replicas(self) -> int:
        """The number of standby tasks beside each active task of a stateful subtopology."""
        return self._number("streams.num.standby.replicas")

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The settings that the assignor is given; the epoch rises if they change."""
        configs = {STANDBY_REPLICAS: str(self.num_standby_replicas)}
        tags = self.rack_aware_assignment_tags
        return {**configs, RACK_AWARE_TAGS: ",".join(tags)} if tags else configs

    @property
    def rack_aware_assignment_tags(self) -> tuple[str, ...]:
        """The tags that clients have to have, since 4.4; the assignor `sticky` does not use them."""
        if not dialect_of(self.cluster.settings).streams_groups_have_rack_tags:
            return ()
        text = group_text(self.cluster, self.group_id, "streams.rack.aware.assignment.tags")
        return tuple(tag.strip() for tag in text.split(",") if tag.strip())

    def _number(self, name: str) -> int:
        return group_value(self.cluster, self.group_id, name)
