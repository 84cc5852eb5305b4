"""Processing may take longer than the session (KIP-62).

Before KIP-62 one thread did both, consume and send heartbeats: who was busy for longer than session.timeout.ms was
thrown out. Since then heartbeats have a thread of their own, and another setting, max.poll.interval.ms, says how long
processing may take. The coordinator knows it as the rebalance timeout: so long it waits for who has to join again.
"""

from rebalancing.stage import Stage


def test_who_is_busy_for_longer_than_its_session_stays_a_member() -> None:
    """The heartbeats go on, in the background; the coordinator does not know that it is busy at all."""
    with Stage(protocols=["range"], session_timeout_s=10, rebalance_timeout_s=300) as stage:
        stage.start("C1")
        stage.start("C2")
        generation = stage.group.generation
        stage.pass_time(200)
        assert stage.group.generation == generation
        assert stage.owns == {"C1": "P1 P2 P3", "C2": "P4 P5 P6"}


def test_a_rebalance_waits_for_who_is_busy_and_does_not_lose_it() -> None:
    """C2 hears of the rebalance at once, and finishes its batch first: for a minute, six times its session."""
    with Stage(protocols=["range"], session_timeout_s=10, rebalance_timeout_s=300) as stage:
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


def test_who_is_busy_for_longer_than_its_rebalance_timeout_is_left_behind() -> None:
    """max.poll.interval.ms is the longest anybody waits: then the group forms without it."""
    with Stage(protocols=["range"], session_timeout_s=10, rebalance_timeout_s=30) as stage:
        stage.start("C1")
        stage.start("C2", behaviour={"kind": "straggler", "delay_s": 60})
        stage.pass_time(120)
        stage.skip_rounds()
        stage.start("C3")
        stage.pass_time(20)
        assert stage.rounds()[0] == {"C1": "P1 P2 P3", "C3": "P4 P5 P6"}


def test_a_process_without_the_background_thread_loses_the_group() -> None:
    """As it was before the KIP: no heartbeats while it works, therefore no member any more when it is done."""
    with Stage(protocols=["range"], session_timeout_s=10) as stage:
        stage.start("C1")
        stage.start("C2", behaviour="silent")
        stage.pass_time(30)
        assert stage.rounds()[-1] == {"C1": "P1 P2 P3 P4 P5 P6"}
