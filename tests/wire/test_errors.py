import pytest

from koordinator.wire.errors import Error


def test_every_code_from_minus_1_to_128_has_a_name() -> None:
    assert [error.value for error in Error] == list(range(-1, 129))


def test_the_errors_of_groups_have_the_numbers_of_released_kafka() -> None:
    assert (Error.MEMBER_ID_REQUIRED, Error.GROUP_MAX_SIZE_REACHED, Error.FENCED_INSTANCE_ID) == (79, 81, 82)


@pytest.mark.parametrize(
    ("error", "retriable"),
    [
        (Error.COORDINATOR_NOT_AVAILABLE, True),
        (Error.NOT_COORDINATOR, True),
        (Error.UNSTABLE_OFFSET_COMMIT, True),
        (Error.NONE, False),
        (Error.REBALANCE_IN_PROGRESS, False),
        (Error.FENCED_INSTANCE_ID, False),
    ],
)
def test_retriable_errors_equal_the_java_clients(error: Error, retriable: bool) -> None:  # noqa: FBT001
    assert error.retriable is retriable
