"""Dead letters of a share group at a partition leader (KIP-1191): H-401 to H-414, and requests that fail."""

from __future__ import annotations

from typing import Any

import pytest

from koordinator.emulator.core.data.share.facts import DeadLettersWritten
from koordinator.wire.errors import Error
from koordinator.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from koordinator.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from koordinator.wire.records import Record, read_batches, read_records
from tests.core.data.share.conftest import ShareDesk, shown

ENABLED = {"errors.deadletterqueue.group.enable": "true"}
DEAD = "dlq.jobs"


class LetterDesk(ShareDesk):
    """A share group whose dead letters go to a topic, and the events about them."""

    def __init__(self, **settings: object) -> None:
        self.events: list[DeadLettersWritten] = []
        super().__init__(**settings)
        self.configs(errors_deadletterqueue_topic_name=DEAD)

    def dead_topic(self, **configs: str) -> None:
        topic = self.cluster.create_topic(DEAD, 1)
        topic.configs = {**ENABLED, **{name.replace("_", "."): each for name, each in configs.items()}}

    def _perform(self, effects: Any) -> None:
        effects = list(effects)
        self.events += [each for each in effects if isinstance(each, DeadLettersWritten)]
        super()._perform(each for each in effects if not isinstance(each, DeadLettersWritten))

    @property
    def letters(self) -> list[Record]:
        log = self.cluster.topics[DEAD].logs[0]
        return [record for _, batch in read_batches(log.content) for record in read_records(batch)]

    @property
    def offsets(self) -> list[str]:
        return [dict(letter.headers)["__dlq.errors.offset"].decode() for letter in self.letters]

    @property
    def problems(self) -> list[str]:
        return [event.problem for event in self.events]


@pytest.fixture
def share() -> LetterDesk:
    return LetterDesk()


def produced(error: Error) -> ProduceResponse:
    row = PartitionProduceResponse(error_code=error)
    return ProduceResponse(responses=(TopicProduceResponse(partition_responses=(row,)),))


def created(error: Error) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=(CreatableTopicResult(name=DEAD, error_code=error),))


def test_kip_1191_a_rejected_record_is_archiving_until_its_dead_letter_is_written(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    assert shown(share.A("A", 1, "0-9=3")) == "ok"
    assert share.writes == ["0,0: 0-9/3/1", "0,10: 0-9/4/1"]
    assert share.offsets == [str(at) for at in range(10)]
    (event,) = share.events
    assert (event.topic, event.partition, event.first, event.last, event.deliveries) == ("x", 0, 0, 9, 1)
    assert (event.written_to, event.cause, event.problem) == (DEAD, "rejected", "")
    share.P(1)
    assert shown(share.F("A", 2, wait=500)) == "[10-10 x1]"


def test_kip_1191_headers_say_where_the_record_was(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    share.A("A", 1, "3-3=3")
    (letter,) = share.letters
    assert (letter.key, letter.value, letter.timestamp) == (None, None, share.now)
    assert letter.headers == (
        ("__dlq.errors.topic", b"x"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"3"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", b"Offset rejected by client."),
    )


def test_kip_1191_the_acknowledgement_is_answered_before_the_dead_letter_is_written(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    share.is_held = True
    answer = share.A("A", 1, "0-9=3")
    assert shown(answer) == "parked"
    share.flow(1)
    assert (shown(answer), share.letters_sent) == ("ok", 0)
    assert (share.R, share.letters) == ("(2,0,[0-9/3/1])", [])


def test_kip_1191_a_refused_acknowledgement_writes_no_dead_letter(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    share.coordinator.errors.append(Error.INVALID_REQUEST)
    assert shown(share.A("A", 1, "0-9=3")).startswith("-1 ")
    assert (share.letters, share.events) == ([], [])
    assert shown(share.A("A", 2, "0-9=1")) == "ok"


def test_kip_1191_expired_locks_at_the_limit_are_dead_letters_even_if_their_write_fails(share: LetterDesk) -> None:
    share.dead_topic()
    share.configs(share_delivery_count_limit="2")
    share.S2()
    share.wait(30_000)
    assert shown(share.F("A", 1, wait=500)) == "[0-9 x2]"
    share.coordinator.errors.append(Error.INVALID_REQUEST)
    share.wait(30_000)
    assert share.offsets == [str(at) for at in range(10)]
    assert {event.cause for event in share.events} == {"delivered_too_often"}
    assert share.R == "(2,0,[0-9/4/2])"


@pytest.mark.parametrize(
    ("topic", "configs", "problem"),
    [
        (None, {}, f"there is no topic {DEAD}, and errors.deadletterqueue.auto.create.topics.enable=false"),
        ("", {}, f"the topic {DEAD} has errors.deadletterqueue.group.enable=false"),
        (
            "true",
            {"errors_deadletterqueue_topic_name_prefix": "other."},
            f"{DEAD} does not begin with errors.deadletterqueue.topic.name.prefix=other.",
        ),
    ],
    ids=["missing", "closed", "of another prefix"],
)
def test_kip_1191_records_without_a_fit_topic_are_archived(
    topic: str | None, configs: dict[str, str], problem: str
) -> None:
    share = LetterDesk(**configs)
    if topic is not None:
        share.cluster.create_topic(DEAD, 1).configs = {"errors.deadletterqueue.group.enable": topic} if topic else {}
    share.S2()
    assert shown(share.A("A", 1, "0-9=3")) == "ok"
    assert (share.R, share.problems, share.letters_sent) == ("(2,0,[0-9/4/1])", [problem], 0)


def test_kip_1191_a_group_that_has_no_topic_any_more_archives_what_was_to_be_written(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    share.is_held = True
    share.A("A", 1, "0-9=3")
    share.configs(errors_deadletterqueue_topic_name="")
    share.is_held = False
    share.flow()
    assert (share.R, share.problems) == ("(2,0,[0-9/4/1])", ["errors.deadletterqueue.topic.name is empty"])


def test_kip_1191_a_missing_topic_is_created_with_the_configs_of_one_for_dead_letters() -> None:
    share = LetterDesk(errors_deadletterqueue_auto_create_topics_enable=True, num_partitions=1)
    share.S2()
    share.A("A", 1, "0-9=3")
    assert share.cluster.topics[DEAD].configs == {**ENABLED, "message.timestamp.type": "CreateTime"}
    assert (len(share.letters), share.letters_sent) == (10, 2)


def test_kip_1191_a_creation_that_fails_is_repeated_if_the_topic_may_come() -> None:
    share = LetterDesk(errors_deadletterqueue_auto_create_topics_enable=True)
    share.letter_answers += [created(Error.TOPIC_ALREADY_EXISTS), created(Error.POLICY_VIOLATION)]
    share.S2()
    share.A("A", 1, "0-9=3")
    assert share.problems == []
    share.wait(2_000)
    assert (share.problems, share.R) == (["POLICY_VIOLATION"], "(2,0,[0-9/4/1])")


def test_kip_1191_a_write_is_repeated_four_times_after_growing_waits(share: LetterDesk) -> None:
    share.dead_topic()
    share.letter_answers += [produced(Error.NOT_LEADER_OR_FOLLOWER), None, None, None, None]
    share.S2()
    share.A("A", 1, "0-9=3")
    for sent, wait_ms in enumerate((2_000, 4_000, 8_000, 16_000), start=1):
        assert share.letters_sent == sent
        share.wait(wait_ms - 1)
        assert (share.letters_sent, share.R) == (sent, "(2,0,[0-9/3/1])")
        share.wait(1)
    assert (share.problems, share.R) == (["NETWORK_EXCEPTION 5 times"], "(2,0,[0-9/4/1])")


def test_kip_1191_a_success_resets_the_number_of_attempts(share: LetterDesk) -> None:
    share.dead_topic(max_message_bytes="300")
    share.letter_answers += [None, None]
    share.S2()
    share.A("A", 1, "0-9=3")
    share.wait(6_000)
    assert share.problems == [""]
    assert share.offsets == [str(at) for at in range(10)]


def test_kip_1191_other_errors_end_the_attempt(share: LetterDesk) -> None:
    share.dead_topic()
    share.letter_answers.append(produced(Error.INVALID_RECORD))
    share.S2()
    share.A("A", 1, "0-9=3")
    assert (share.problems, share.R) == (["INVALID_RECORD"], "(2,0,[0-9/4/1])")


def test_kip_1191_dead_letters_are_written_in_batches_that_the_topic_takes(share: LetterDesk) -> None:
    share.dead_topic(max_message_bytes="500")
    share.S2()
    share.A("A", 1, "0-9=3")
    sizes = [len(batch) for _, batch in read_batches(share.cluster.topics[DEAD].logs[0].content)]
    assert len(sizes) > 1
    assert max(sizes) <= 500
    assert share.offsets == [str(at) for at in range(10)]


def test_kip_1191_copies_have_key_and_value_and_no_other_headers(share: LetterDesk) -> None:
    share.dead_topic()
    share.configs(errors_deadletterqueue_copy_record_enable="true")
    share.S2()
    share.A("A", 1, "4-5=3")
    assert [(letter.key, letter.value) for letter in share.letters] == [(None, b"v")] * 2
    assert {name.startswith("__dlq.errors.") for letter in share.letters for name, _ in letter.headers} == {True}


def test_kip_1191_a_copy_that_is_too_large_is_lost_and_its_record_archived(share: LetterDesk) -> None:
    share.dead_topic(max_message_bytes="400")
    share.configs(errors_deadletterqueue_copy_record_enable="true")
    assert share.produce(share.batch(b"v" * 1_000), "x").error_code == 0
    assert shown(share.F("A", 0, 0, wait=500)) == "[0-0 x1]"
    share.A("A", 1, "0-0=3")
    assert (share.letters, share.problems) == ([], ["MESSAGE_TOO_LARGE"])
    assert share.R == "(2,0,[0-0/4/1])"


def test_kip_1191_loaded_records_are_written_again(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    share.is_held = True
    share.A("A", 1, "0-9=3")
    share.flow(1)
    share.held.clear()
    share.is_held = False
    share.data.shares.forget()
    assert shown(share.F("A", 0, 0, wait=500)) == "parked"
    assert share.offsets == [str(at) for at in range(10)]
    assert share.R == "(2,0,[0-9/4/1])"


def test_kip_1191_a_partition_that_is_led_elsewhere_is_not_archived_by_its_former_leader(share: LetterDesk) -> None:
    share.dead_topic()
    share.S2()
    share.is_held = True
    share.A("A", 1, "0-9=3")
    share.flow(1)
    share.data.shares.forget()
    share.is_held = False
    share.flow()
    assert len(share.letters) == 10
    assert share.writes == ["0,0: 0-9/3/1"]
