"""Dead letters of share groups (KIP-1191): the topic that rejected and exhausted records of x are written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import requests

from koordinator.wire.messages.api_versions import ApiVersionsRequest
from koordinator.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from koordinator.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from koordinator.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from koordinator.wire.records import read_records
from scenarios.requests import LIMIT_S, Absent
from scenarios.share_fetches import ShareFetches

if TYPE_CHECKING:
    from scenarios.player import Player

PREFIX = "dlq."
"""The beginning of the names of topics for dead letters, by default."""

FEATURE = "share.version"
UPGRADE, SAFE_DOWNGRADE = 1, 2

ENABLED = {"errors.deadletterqueue.group.enable": "true"}
"""The configs of a topic that takes dead letters."""


class DeadLetters(ShareFetches):
    """Members of a group whose dead letters go to the topic d. Raises Absent before 4.4."""

    def __init__(self, play: Player) -> None:
        if not play.since("4.4.0"):
            raise Absent("dead letters of share groups", 1, play.target.release)
        super().__init__(play)
        self._real["d"] = f"{PREFIX}{play.g}.dead"

    def begin_with(self, *counts: int, partitions: int = 1, prefix: str = PREFIX, **configs: object) -> None:
        """Configure the group with the topic d, create x, let A join, and write batches of so many records."""
        self._real["d"] = f"{prefix}{self._play.g}.dead"
        self.begin(*counts, partitions=partitions, **{"errors_deadletterqueue_topic_name": self._real["d"], **configs})

    def create_dead_letter_topic(self, partitions: int = 1, *, prefix: str = PREFIX, is_enabled: bool = True) -> None:
        """Create d."""
        configs = ENABLED if is_enabled else None
        self._real["d"] = self._play.new_topic(partitions, configs, suffix=".dead", prefix=prefix)

    def has_dead_letter_topic(self) -> bool:
        """Return whether there is a topic d, without asking for its creation."""
        name = MetadataRequestTopic(name=self._real["d"])
        request = MetadataRequest(topics=(name,), allow_auto_topic_creation=False)
        return bool(self._play.slowly(request, 5).topics[0].partitions)

    def dead_letters(self) -> list[str]:
        """Return the records of d, sorted: key, value, and the headers without the common beginning of their names."""
        found = [
            f"{record.key!r}={record.value!r} "
            + " ".join(
                f"{name.removeprefix('__dlq.errors.')}={self._shown_header(each)}" for name, each in record.headers
            )
            for _, batch in self._play.batches(self._real["d"])
            for record in read_records(batch)
        ]
        return sorted(found)

    def _shown_header(self, value: bytes | None) -> str:
        text = (value or b"").decode()
        return {self._real["x"]: "x", self._play.g: "g"}.get(text, text)

    def await_dead_letters(self, *wanted: str) -> None:
        """Wait until d has these records, in any order."""
        self._play.wait_until(f"{wanted} are dead letters", lambda: self.dead_letters() == sorted(wanted))

    def letter(
        self, offset: int, count: int, *, exceeded: bool = False, content: str = "None=None", partition: int = 0
    ) -> str:
        """Return the text of a dead letter of x."""
        cause = "delivery count exceeded the threshold" if exceeded else "rejected by client"
        return (
            f"{content} topic=x partition={partition} offset={offset} group=g delivery.count={count} "
            f"message=Offset {cause}."
        )

    def dead_letters_in(self, partition: int) -> int | None:
        """Return the number of records in a partition of d, or None as long as nobody leads it."""
        request = requests.list_offsets(self._real["d"], {partition: -1})
        row = self._play.slowly(request, 4).topics[0].partitions[0]
        return None if row.error_code else int(row.offset)

    def dead_letter_configs(self) -> None:
        """Add the configs of d that were set to the transcript."""
        resource = DescribeConfigsResource(resource_type=2, resource_name=self._real["d"], configuration_keys=None)
        (row,) = self._play.ask(DescribeConfigsRequest(resources=(resource,)), 4).unrecorded().results
        own = {each.name: each.value for each in row.configs if each.config_source == 1}
        self._play.transcript.add("configs", 0, str(sorted(own.items())))

    def set_share_version(self, level: int) -> None:
        """Finalize a level of the feature share.version, and wait until the broker knows it."""
        kind = SAFE_DOWNGRADE if level < self._share_version() else UPGRADE
        row = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=kind)
        request = UpdateFeaturesRequest(timeout_ms=LIMIT_S * 1000, feature_updates=(row,))
        assert self._play.slowly(request, 1).error_code == 0
        self._play.wait_until(f"{FEATURE} is {level}", lambda: self._share_version() == level)

    def _share_version(self) -> int:
        request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
        rows = self._play.slowly(request, 3).finalized_features
        return next((row.max_version_level for row in rows if row.name == FEATURE), 0)
