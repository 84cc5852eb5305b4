"""The instance ids of a consumer group, as its records leave them."""

from __future__ import annotations

from koordinator.emulator.core.clock import GroupClock
from koordinator.emulator.core.dialect import Dialect
from koordinator.emulator.core.groups.consumer.group import ConsumerGroup
from koordinator.emulator.core.groups.consumer.member import ConsumerMember
from koordinator.emulator.core.groups.consumer.records import member_record
from koordinator.emulator.core.journal import Journal


def test_an_instance_id_stays_that_of_the_member_that_has_taken_it_over() -> None:
    group = ConsumerGroup("g", 0, GroupClock("real", 0), 0, Dialect())
    for member_id, instance_id in (("a", "x"), ("b", "x"), ("a", "y")):
        group.replay(member_record("g", ConsumerMember(member_id, instance_id=instance_id)), Journal())
    assert group.static_members == {"x": "b", "y": "a"}
