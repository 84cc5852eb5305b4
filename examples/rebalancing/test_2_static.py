"""Static Membership: a restart is no rebalance (KIP-345).

The article: "Static Membership". A member with a group.instance.id is known by it. It says nothing when it is closed,
and whoever comes with its id in time gets its place and its assignment back. Four things are left that rebalance such
a group: a new member, the leader when it joins again, a session that is over, and a member that is said to leave.
"""

import pytest
from rebalancing.stage import SESSION_S, Stage


def test_a_restart_in_time_keeps_the_assignment_and_nobody_notices() -> None:
    with Stage(protocols=["range"]) as stage:
        for number in (1, 2, 3):
            stage.start(f"C{number}", instance_id=f"i{number}")
        before, generation = stage.owns, stage.group.generation
        member_id = stage.group.puppets["C2"].member_id

        stage.kill("C2", for_s=SESSION_S - 10)
        stage.start_again("C2")

        assert stage.owns == before == {"C1": "P1 P2", "C2": "P3 P4", "C3": "P5 P6"}
        assert stage.group.generation == generation
        assert stage.group.puppets["C2"].member_id != member_id


def test_a_leader_may_be_restarted_too() -> None:
    with Stage(protocols=["range"]) as stage:
        for number in (1, 2, 3):
            stage.start(f"C{number}", instance_id=f"i{number}")
        assert stage.group.puppets["C1"].is_leader
        before, generation = stage.owns, stage.group.generation
        stage.kill("C1")
        stage.start_again("C1")
        assert (stage.owns, stage.group.generation) == (before, generation)


def test_a_new_member_rebalances_the_group() -> None:
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.skip_rounds()
        stage.start("C2", instance_id="i2")
        assert stage.rounds() == [{"C1": "P1 P2 P3", "C2": "P4 P5 P6"}]


def test_a_leader_that_joins_again_rebalances_the_group() -> None:
    """As a member, not as a new process: it may have something new to say, such as new topics."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.start("C2", instance_id="i2")
        stage.skip_rounds()
        stage.group.puppets["C1"].join()
        stage.pass_time(20)
        assert stage.rounds() == [{"C1": "P1 P2 P3", "C2": "P4 P5 P6"}]


def test_a_session_that_is_over_rebalances_the_group() -> None:
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.start("C2", instance_id="i2")
        stage.skip_rounds()
        stage.kill("C2", for_s=SESSION_S + 5)
        assert stage.rounds() == [{"C1": "P1 P2 P3 P4 P5 P6"}]


def test_a_member_that_is_said_to_leave_rebalances_the_group() -> None:
    """A static consumer does not say so itself; an administrator does (kafka-consumer-groups --remove-members)."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.start("C2", instance_id="i2")
        stage.skip_rounds()
        stage.leave("C2")
        assert stage.rounds() == [{"C1": "P1 P2 P3 P4 P5 P6"}]


@pytest.mark.parametrize("static", [True, False], ids=["with instance ids", "without"])
def test_kip_345_nine_partitions_over_a_restart_and_a_later_rebalance(*, static: bool) -> None:
    """The example of the KIP: A, B and C have three each by the range assignor. A is restarted; later all rebalance.

    The assignor sorts the members. By instance id A is first again, and nothing moves. By member id it is wherever its
    new one puts it: here the member ids begin with the client's id, and that of A's new process is the last.
    """
    with Stage(partitions=9, protocols=["range"]) as stage:
        for name in ("A", "B", "C"):
            stage.start(name, instance_id=name if static else None, client_id=f"1-{name}")
        assert stage.owns == {"A": "P1 P2 P3", "B": "P4 P5 P6", "C": "P7 P8 P9"}

        stage.kill("A", for_s=10)
        stage.start("A'", instance_id="A" if static else None, client_id="2-A")
        stage.pass_time(2 * SESSION_S)
        stage.group.puppets["B"].leave()
        stage.start_again("B")

        after = {name: stage.owns[name] for name in ("A'", "B", "C")}
        if static:
            assert after == {"A'": "P1 P2 P3", "B": "P4 P5 P6", "C": "P7 P8 P9"}
        else:
            assert after == {"A'": "P7 P8 P9", "B": "P1 P2 P3", "C": "P4 P5 P6"}


@pytest.mark.parametrize("members", [4, 16])
def test_a_rolling_bounce_costs_the_same_number_of_rebalances_whatever_the_size_of_the_group(members: int) -> None:
    """KIP-345 promises "a constant number", one for the leader; since 2.4 that one is no more: it is none."""
    with Stage(partitions=32, protocols=["range"]) as stage:
        for number in range(members):
            stage.start(f"C{number}", instance_id=f"i{number:02}")
        before, generation = stage.owns, stage.group.generation
        for number in range(members):
            stage.kill(f"C{number}", for_s=10)
            stage.start_again(f"C{number}")
        assert stage.group.generation - generation == 0
        assert stage.owns == before


def test_a_rolling_bounce_of_dynamic_members_costs_two_rebalances_for_each() -> None:
    with Stage(partitions=32, protocols=["range"]) as stage:
        for number in range(16):
            stage.start(f"C{number}")
        generation = stage.group.generation
        for number in range(16):
            stage.leave(f"C{number}")
            stage.start_again(f"C{number}")
        assert stage.group.generation - generation == 2 * 16
