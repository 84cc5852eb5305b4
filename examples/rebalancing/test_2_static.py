"""Static membership: a restart needs no rebalance (KIP-345).

The article: "Static Membership". The group knows a member by its group.instance.id. It sends nothing on close, and a
process that returns with the id in time gets its place and its assignment back. Four events still rebalance such a
group: a new member, a rejoin of the leader, an expired session, and the removal of a member.
"""

import pytest
from rebalancing.stage import SESSION_S, Stage


def test_a_restart_in_time_keeps_the_assignment_unnoticed() -> None:
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


def test_a_rejoining_leader_rebalances_the_group() -> None:
    """A rejoining member, unlike a new process, may bring changes such as new topics."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.start("C2", instance_id="i2")
        stage.skip_rounds()
        stage.group.puppets["C1"].join()
        stage.pass_time(20)
        assert stage.rounds() == [{"C1": "P1 P2 P3", "C2": "P4 P5 P6"}]


def test_an_expired_session_rebalances_the_group() -> None:
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.start("C2", instance_id="i2")
        stage.skip_rounds()
        stage.kill("C2", for_s=SESSION_S + 5)
        assert stage.rounds() == [{"C1": "P1 P2 P3 P4 P5 P6"}]


def test_a_removed_member_rebalances_the_group() -> None:
    """A static consumer does not leave by itself; an administrator removes it (kafka-consumer-groups)."""
    with Stage(protocols=["range"]) as stage:
        stage.start("C1", instance_id="i1")
        stage.start("C2", instance_id="i2")
        stage.skip_rounds()
        stage.leave("C2")
        assert stage.rounds() == [{"C1": "P1 P2 P3 P4 P5 P6"}]


@pytest.mark.parametrize("static", [True, False], ids=["with instance ids", "without"])
def test_kip_345_nine_partitions_over_a_restart_and_a_later_rebalance(*, static: bool) -> None:
    """The example of the KIP: A, B and C own three each by the range assignor. A restarts; later all rebalance.

    The assignor sorts the members. By instance id A is first again, and nothing moves. By member id its place depends
    on its new id: here ids begin with the client's id, and that of A's new process sorts last.
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


@pytest.mark.slow
@pytest.mark.parametrize("members", [4, 16])
def test_a_rolling_bounce_costs_the_same_number_of_rebalances_whatever_the_size_of_the_group(members: int) -> None:
    """KIP-345 promises "a constant number", one for the leader; since 2.4 not even that one: it is zero."""
    with Stage(partitions=32, protocols=["range"]) as stage:
        for number in range(members):
            stage.start(f"C{number}", instance_id=f"i{number:02}")
        before, generation = stage.owns, stage.group.generation
        for number in range(members):
            stage.kill(f"C{number}", for_s=10)
            stage.start_again(f"C{number}")
        assert stage.group.generation - generation == 0
        assert stage.owns == before


@pytest.mark.slow
def test_a_rolling_bounce_of_dynamic_members_costs_two_rebalances_for_each() -> None:
    with Stage(partitions=32, protocols=["range"]) as stage:
        for number in range(16):
            stage.start(f"C{number}")
        generation = stage.group.generation
        for number in range(16):
            stage.leave(f"C{number}")
            stage.start_again(f"C{number}")
        assert stage.group.generation - generation == 2 * 16
