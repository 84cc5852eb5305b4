"""The input of the checks: the calls of groups, and related events of clients and the coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ..silver.member import closings
from .findings import GROUP, OK, between_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MEMBER = (*GROUP, "member_id")
CONNECTION = (*GROUP, "node", "conn_id")


@dataclass(frozen=True)
class CheckInput:
    """silver/event, silver/call, silver/member and silver/group, with the frames that several checks derive."""

    event: DataFrame
    call: DataFrame
    member: DataFrame
    group: DataFrame

    @property
    def requesting(self) -> DataFrame:
        """The members that sent a request."""
        return self.member.where("first_seq IS NOT NULL")

    @property
    def labels(self) -> DataFrame:
        """The display name of each member."""
        return self.member.select(*MEMBER, F.col("member").alias("label"))

    @property
    def ends(self) -> DataFrame:
        """The last event of each group with a group time: `end`."""
        last = F.struct(
            F.col("end_seq").alias("seq"), F.col("end_wall_us").alias("wall_us"), F.col("end_us").alias("group_us")
        )
        return self.group.where("end_seq IS NOT NULL").select(*GROUP, last.alias("end"))

    @property
    def states(self) -> DataFrame:
        """The state changes, each with the sequence number of the next: `until_seq`, null for the last."""
        after = Window.partitionBy(*GROUP).orderBy("seq")
        return (
            self.event.where("kind = 'state' AND group_id IS NOT NULL")
            .select(*GROUP, "seq", "generation", "member_id", "state_from", "state_to", "cause")
            .withColumn("until_seq", F.lead("seq").over(after))
        )

    @property
    def changes(self) -> DataFrame:
        """The changes of members: added, removed, replaced, pending."""
        return self.event.where("kind = 'member' AND group_id IS NOT NULL").select(
            *MEMBER, "seq", "wall_us", "group_us", "instance_id", "change", "cause"
        )

    @property
    def closings(self) -> DataFrame:
        """The end of each connection: `closed_seq`, and `by_broker`."""
        return closings(self.event)

    @property
    def relocations(self) -> DataFrame:
        """Starts and stops of nodes, and leadership changes; `of_group` is set if one group is concerned."""
        return self.event.where("kind IN ('node', 'leader')").select(
            "trace_id", F.col("group_id").alias("of_group"), "seq"
        )

    def with_waited_ms(self, waiting: DataFrame, since: str = "since", until: str = "until") -> DataFrame:
        """Add `waited_ms`: the time between the structs (seq, wall_us, group_us), minus the time behind a held request.

        A connection handles one request at a time. A test may hold a request or delay its response, and the client's
        next requests wait behind it.
        """
        # a request with an immediate response has held up nothing
        call = self.call.where("answered_wall_us IS NULL OR answered_wall_us > wall_us").select(
            *CONNECTION,
            F.struct("seq", "wall_us", "group_us", "answered_seq", "answered_wall_us", "answered_group_us").alias(
                "call"
            ),
        )
        between = (F.col("call.seq") > F.col(f"{since}.seq")) & (F.col("call.seq") < F.col(f"{until}.seq"))
        same = reduce(and_, (F.col(f"waiting.{name}") == F.col(f"held.{name}") for name in CONNECTION))
        in_hand = F.coalesce(F.col("call.answered_seq") > F.col(f"{until}.seq"), F.lit(True))  # noqa: FBT003 - a value
        times = ("call.wall_us", "call.group_us")
        held = F.when(in_hand, between_ms(times, (f"{until}.wall_us", f"{until}.group_us"))).otherwise(
            between_ms(times, ("call.answered_wall_us", "call.answered_group_us"))
        )
        all_ms = between_ms((f"{since}.wall_us", f"{since}.group_us"), (f"{until}.wall_us", f"{until}.group_us"))
        whole = [F.col(f"waiting.{name}") for name in waiting.columns]
        return (
            waiting.alias("waiting")
            .join(call.alias("held"), same & between, "left")
            .groupBy(*whole)
            .agg(F.sum(F.when(F.col("call").isNotNull(), held)).alias("held_ms"))
            .withColumn("waited_ms", all_ms - F.coalesce("held_ms", F.lit(0)))
            .drop("held_ms")
        )

    def answered_as(self, apis: tuple[str, ...], error: str = OK) -> DataFrame:
        """Return the calls of these APIs with this error in the response."""
        return self.call.where(F.col("api").isin(*apis) & (F.col("error") == error))
