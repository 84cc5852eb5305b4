"""Labels of members in a comparison with an expectation, the same on the emulator and on a running Kafka."""

from __future__ import annotations

import pytest

from koordinator.emulator.control.inspect.comparison import member_labels

DYNAMIC = [(None, "app-1", "app"), (None, "other-2", "other")]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ([], ["app-1", "other-2"]),
        (["app", "other"], ["app", "other"]),
        (["app-1", "other"], ["app-1", "other"]),
        (["unknown"], ["app-1", "other-2"]),
    ],
)
def test_a_member_is_labelled_as_the_expectation_names_it(names: list[str], labels: list[str]) -> None:
    assert member_labels(DYNAMIC, names) == labels


def test_a_static_member_is_labelled_by_its_instance_id_unless_named_otherwise() -> None:
    static = [("i", "i-1", "app")]
    assert [member_labels(static, names) for names in ([], ["app"], ["i-1"], ["i", "app"])] == [
        ["i"],
        ["app"],
        ["i-1"],
        ["i"],
    ]


def test_a_client_id_of_several_members_is_no_label() -> None:
    assert member_labels([("i", "i-1", "app"), (None, "app-2", "app")], ["app"]) == ["i", "app-2"]
