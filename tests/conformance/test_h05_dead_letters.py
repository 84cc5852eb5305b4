"""Dead letters of share groups: rejected records, and those delivered too often, are written to a topic (KIP-1191)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scenarios.dead_letters import DeadLetters
from scenarios.registry import scenario
from scenarios.share_fetches import WAIT_MS, X

if TYPE_CHECKING:
    from scenarios.player import Player

share_scenario = partial(scenario, kip="KIP-1191", share=True)

LOCK_MS = 1_500


def reads(play: Player, *counts: int, **configs: object) -> DeadLetters:
    """Let A join a group with a topic d for dead letters, and a topic x with batches of so many records."""
    x = DeadLetters(play)
    x.create_dead_letter_topic()
    x.begin_with(*counts, **configs)
    return x


def holds(play: Player, *counts: int, **configs: object) -> DeadLetters:
    """Let A acquire all these records."""
    x = reads(play, *counts, **configs)
    assert x.take("A", 0) == f"0-{sum(counts) - 1}/1"
    return x


@share_scenario()
def test_h401_rejected_records_are_written_to_the_topic_of_dead_letters(play: Player) -> None:
    x = holds(play, 5, 5)
    assert x.acknowledge("A", 1, "0-9=3") == 0
    x.await_state(X, (2, 0, "0-9/4/1"))
    x.await_dead_letters(*(x.letter(each, 1) for each in range(10)))
    x.offsets()
    x.transcribe_state(*X)
    x.produce("x", 1)
    assert x.take("A", 2) == "10-10/1"
    assert x.acknowledge("A", 3, "10-10=1") == 0
    assert x.read(X) == (2, 10, "10-10/2/1")


@share_scenario()
def test_h402_a_dead_letter_may_have_the_key_and_the_value_of_its_record(play: Player) -> None:
    x = holds(play, 1, 1, errors_deadletterqueue_copy_record_enable="true")
    assert x.acknowledge("A", 1, "0-1=1,3") == 0
    x.await_state(X, (2, 1, "1-1/4/1"))
    x.await_dead_letters(x.letter(1, 1, content="None=b'v'"))


@share_scenario()
def test_h403_records_that_were_delivered_too_often_are_dead_letters(play: Player) -> None:
    x = holds(play, 3, share_delivery_count_limit=2)
    assert x.acknowledge("A", 1, "0-2=2") == 0
    assert x.take("A", 2) == "0-2/2"
    assert x.acknowledge("A", 3, "0-2=2,1,2") == 0
    x.await_dead_letters(x.letter(0, 2, exceeded=True), x.letter(2, 2, exceeded=True))
    # the two writes may come one after the other, or both at once
    play.wait_until("all are archived", lambda: "/3/" not in x.read(X, recorded=False)[2])
    x.produce("x", 1)
    assert x.take("A", 4) == "3-3/1"
    assert x.acknowledge("A", 5, "3-3=1") == 0
    assert x.read(X) == (2, 3, "3-3/2/1")


@share_scenario(slow=True)
def test_h404_records_whose_locks_expire_too_often_are_dead_letters(play: Player) -> None:
    x = holds(play, 3, share_delivery_count_limit=2, share_record_lock_duration_ms=LOCK_MS)
    x.await_state(X, (2, 0, "0-2/0/1"))
    assert x.take("A", 1) == "0-2/2"
    x.await_dead_letters(*(x.letter(each, 2, exceeded=True) for each in range(3)))
    x.await_state(X, (2, 0, "0-2/4/2"))
    x.transcribe_state(*X)


@share_scenario()
def test_h405_records_of_a_closed_session_may_be_dead_letters(play: Player) -> None:
    x = holds(play, 3, share_delivery_count_limit=2)
    assert x.acknowledge("A", 1, "0-2=2") == 0
    assert x.take("A", 2) == "0-2/2"
    assert x.fetch("A", -1) == {}
    x.await_dead_letters(*(x.letter(each, 2, exceeded=True) for each in range(3)))
    x.await_state(X, (2, 0, "0-2/4/2"))
    x.transcribe_state(*X)


@share_scenario()
def test_h406_gaps_are_no_dead_letters(play: Player) -> None:
    x = holds(play, 5)
    assert x.acknowledge("A", 1, "0-4=0,3,0,1,2") == 0
    x.await_state(X, (2, 1, "1-2/4/1 3-3/2/1 4-4/0/1"))
    x.await_dead_letters(x.letter(1, 1))
    x.transcribe_state(*X)


@share_scenario()
def test_h407_without_the_topic_records_are_archived_all_the_same(play: Player) -> None:
    x = DeadLetters(play)
    x.begin_with(5)
    assert x.take("A", 0) == "0-4/1"
    assert x.acknowledge("A", 1, "0-4=3") == 0
    x.await_state(X, (2, 0, "0-4/4/1"))
    assert not x.has_dead_letter_topic()
    x.transcribe_state(*X)


@share_scenario()
def test_h408_a_topic_that_takes_no_dead_letters_gets_none(play: Player) -> None:
    x = DeadLetters(play)
    x.create_dead_letter_topic(is_enabled=False)
    x.begin_with(5)
    assert x.take("A", 0) == "0-4/1"
    assert x.acknowledge("A", 1, "0-4=3") == 0
    x.await_state(X, (2, 0, "0-4/4/1"))
    assert x.dead_letters() == []


@share_scenario()
def test_h409_a_topic_without_the_prefix_gets_none(play: Player) -> None:
    x = DeadLetters(play)
    x.create_dead_letter_topic(prefix="other.")
    x.begin_with(5, prefix="other.")
    assert x.take("A", 0) == "0-4/1"
    assert x.acknowledge("A", 1, "0-4=3") == 0
    x.await_state(X, (2, 0, "0-4/4/1"))
    assert x.dead_letters() == []


@share_scenario()
def test_h410_names_of_internal_topics_are_refused(play: Player) -> None:
    x = DeadLetters(play)
    x.configure(errors_deadletterqueue_topic_name="__dead")
    x.configure(errors_deadletterqueue_topic_name="a b")
    x.configure(errors_deadletterqueue_topic_name="__consumer_offsets")
    x.configure(errors_deadletterqueue_topic_name="")
    x.configure(errors_deadletterqueue_copy_record_enable="maybe")


@share_scenario(creates_dead_letters=True)
def test_h411_a_broker_may_create_the_topic(play: Player) -> None:
    x = DeadLetters(play)
    x.begin_with(5)
    assert x.take("A", 0) == "0-4/1"
    assert x.acknowledge("A", 1, "0-4=3") == 0
    play.wait_until("there is the topic", x.has_dead_letter_topic)
    play.wait_until("it has a leader", lambda: x.dead_letters_in(0) is not None)
    x.await_dead_letters(*(x.letter(each, 1) for each in range(5)))
    x.await_state(X, (2, 0, "0-4/4/1"))
    x.dead_letter_configs()


@share_scenario()
def test_h412_a_dead_letter_has_the_partition_of_its_record(play: Player) -> None:
    x = DeadLetters(play)
    x.create_dead_letter_topic(2)
    x.begin_with(partitions=3)
    parts = [("x", each) for each in range(3)]
    for _, number in parts:
        x.produce("x", 1, partition=number)
    for member, part in zip("ABC", parts, strict=True):
        assert x.fetch(member, 0, part, wait=WAIT_MS) == {part: "0-0/1"}
        assert x.fetch(member, 1, acks="0-0=3", at=part) == {part: ""}
    x.await_dead_letters(*(x.letter(0, 1, partition=number) for number in range(3)))
    assert [x.dead_letters_in(each) for each in range(2)] == [2, 1]


@share_scenario()
def test_h413_what_was_not_written_before_a_reload_is_written_after_it(play: Player) -> None:
    x = reads(play, 5, share_delivery_count_limit=3)
    assert x.write(X, "0-1/3/1 2-3/3/3", start=0, done=0) == 0
    assert x.take("A", 0) == "4-4/1"
    x.await_dead_letters(
        *(x.letter(each, 1) for each in (0, 1)), *(x.letter(each, 3, exceeded=True) for each in (2, 3))
    )
    x.await_state(X, (2, 0, "0-1/4/1 2-3/4/3"))
    assert x.acknowledge("A", 1, "4-4=1") == 0
    assert x.read(X) == (2, 4, "4-4/2/1")


@share_scenario(restarted=True)
def test_h414_there_are_no_dead_letters_below_level_2_of_the_feature(play: Player) -> None:
    x = reads(play, 3)
    x.set_share_version(1)
    assert x.take("A", 0) == "0-2/1"
    assert x.acknowledge("A", 1, "0-2=3") == 0
    assert x.read(X) == (2, 0, "0-2/4/1")
    x.set_share_version(2)
    x.produce("x", 1)
    assert x.take("A", 2) == "3-3/1"
    assert x.acknowledge("A", 3, "3-3=3") == 0
    x.await_dead_letters(x.letter(3, 1))
    x.await_state(X, (2, 3, "3-3/4/1"))
