"""Processing may take longer than the session (KIP-62).

Before KIP-62 one thread consumed and sent heartbeats: a member that was busy for longer than session.timeout.ms was
removed. Since then a background thread sends heartbeats, and max.poll.interval.ms limits processing. The coordinator
knows it as the rebalance timeout: the time it waits for members to rejoin.
"""

from rebalancing.stage import Stage


def test_a_member_busy_for_longer_than_its_session_stays() -> None:
    """Background heartbeats continue; the coordinator does not know that the member is busy."""
    with Stage(protocols=["range"], session_timeout=10, rebalance_timeout=300) as stage:
        stage.start("C1")
        stage.start("C2")
        generation = stage.group.generation
        stage.pass_time(200)
        assert stage.group.generation == generation
        assert stage.owns == {"C1": "P1 P2 P3", "C2": "P4 P5 P6"}


def test_a_rebalance_waits_for_a_busy_member() -> None:
    """C2 learns of the rebalance at once, and finishes its batch first: for a minute, six times its session."""
    with Stage(protocols=["range"], session_timeout=10, rebalance_timeout=300) as stage:
        stage.start("C1")
        busy = stage.start("C2", behaviour={"kind": "straggler", "delay_s": 60})
        stage.pass_time(120)
        member_id = busy.member_id
        stage.skip_rounds()

        stage.start("C3")
        assert stage.group.state == "PreparingRebalance"
        stage.pass_time(60)

        assert stage.rounds() == [{"C1": "P1 P2", "C2": "P3 P4", "C3": "P5 P6"}]
        assert busy.member_id == member_id


def test_a_member_busy_for_longer_than_its_rebalance_timeout_is_removed() -> None:
    """The group waits at most max.poll.interval.ms, then forms without it."""
    with Stage(protocols=["range"], session_timeout=10, rebalance_timeout=30) as stage:
        stage.start("C1")
        stage.start("C2", behaviour={"kind": "straggler", "delay_s": 60})
        stage.pass_time(120)
        stage.skip_rounds()
        stage.start("C3")
        stage.pass_time(20)
        assert stage.rounds()[0] == {"C1": "P1 P2 P3", "C3": "P4 P5 P6"}


def test_a_process_without_background_heartbeats_is_removed() -> None:
    """As before the KIP: no heartbeats during the work, so the member is gone when the work is done."""
    with Stage(protocols=["range"], session_timeout=10) as stage:
        stage.start("C1")
        stage.start("C2", behaviour="silent")
        stage.pass_time(30)
        assert stage.rounds()[-1] == {"C1": "P1 P2 P3 P4 P5 P6"}
