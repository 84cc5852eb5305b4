"""The words of the handles' types are those that the operations know."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from koordinator.emulator.config.options import OPTIONS
from koordinator.emulator.config.profiles import PROFILES
from koordinator.emulator.control.acls import OPERATIONS
from koordinator.emulator.control.puppets.behaviours import PARAMETERS
from koordinator.emulator.control.puppets.states import PuppetState
from koordinator.emulator.control.snapshots.operations import SCOPES
from koordinator.emulator.control.transactions.operations import MARKERS, STATES
from koordinator.emulator.control.verbs import ALL_GROUP_STATES
from koordinator.emulator.trace.vocabulary import REBALANCE_CAUSES
from koordinator.handles import words
from koordinator.handles.clients import KINDS, MECHANISMS

SECURITY = next(option for option in OPTIONS if option.name == "security").choices


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("AclOperation", OPERATIONS),
        ("Behaviour", PARAMETERS),
        ("ClientLibrary", KINDS),
        ("GroupState", ALL_GROUP_STATES),
        ("Markers", MARKERS),
        ("Mechanism", MECHANISMS),
        ("Profile", PROFILES),
        ("PuppetState", [state.value for state in PuppetState]),
        ("RebalanceCause", REBALANCE_CAUSES),
        ("ResetScope", SCOPES),
        ("Security", SECURITY),
        ("TransactionState", STATES),
    ],
)
def test_a_type_has_exactly_the_words_that_are_known(word: str, known: Any) -> None:
    assert set(get_args(getattr(words, word))) == set(known)
