"""Histories of consumer groups that a broker of release 4.3.1 has recorded: answers, targets and records are equal.

The recording has random groups with equal and with mixed subscriptions, static members, both assignors, and every step
of the handshake. `tests/kafka/test_random_groups.py` makes such histories with a running broker.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes.recorded_groups import History, Player, canonical, comparable, load

RECORDING = load(Path(__file__).with_name("recorded-4.3.json.gz"))


@pytest.mark.parametrize("history", RECORDING.histories, ids=lambda history: f"{history.group}-{history.kind}")
def test_a_recorded_group_gets_kafkas_answers_and_writes_its_records(history: History) -> None:
    player = Player(RECORDING)
    for request, answer in history.steps:
        assert canonical(player.ask(history.group, request)) == canonical(answer), request
    ours = [[comparable(record) for record in batch] for batch in player.batches]
    kafkas = [[comparable(record) for record in batch] for batch in history.batches]
    # later the broker expires the members
    assert ours == kafkas[: len(ours)]
