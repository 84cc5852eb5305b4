"""Histories of consumer groups that brokers have recorded: answers, targets and records are equal.

The recordings of releases 3.9.2, 4.0.2 and 4.3.1 have random groups with equal and with mixed subscriptions, static
members, both assignors, and every step of the handshake. `tests/kafka/test_random_groups.py` makes such histories with
a running broker.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes.recorded_groups import History, Player, Recording, canonical, comparable, load

RECORDINGS = [load(Path(__file__).with_name(f"recorded-{release}.json.gz")) for release in ("3.9", "4.0", "4.3")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recording", "history"),
    [
        pytest.param(recording, history, id=f"{recording.release}-{history.group}-{history.kind}")
        for recording in RECORDINGS
        for history in recording.histories
    ],
)
def test_a_recorded_group_gets_kafkas_answers_and_writes_its_records(recording: Recording, history: History) -> None:
    player = Player(recording)
    for request, answer in history.steps:
        assert canonical(player.ask(history.group, request)) == canonical(answer), request
    ours = [[comparable(record) for record in batch] for batch in player.batches]
    kafkas = [[comparable(record) for record in batch] for batch in history.batches]
    # later the broker expires the members
    assert ours == kafkas[: len(ours)]
