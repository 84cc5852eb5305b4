"""ShareGroupDescribe: a row for each id, with the error of the id or of its coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error

if TYPE_CHECKING:
    from scenes.share_play import SharePlay


def error(play: SharePlay, group: str) -> tuple[Error, str | None]:
    row = play.described(group)
    assert (row.group_id, row.group_state, row.members) == (group, "", ())
    return Error(row.error_code), row.error_message


def test_kip_932_a_group_without_an_id_is_invalid(play: SharePlay) -> None:
    assert error(play, "") == (Error.INVALID_GROUP_ID, None)


def test_kip_932_a_group_that_is_no_share_group_is_not_found(play: SharePlay) -> None:
    play.stable_member(group="classic")
    assert error(play, "classic") == (Error.GROUP_ID_NOT_FOUND, "Group classic is not a share group.")
    assert error(play, "nothing") == (Error.GROUP_ID_NOT_FOUND, "Group nothing not found.")


def test_kip_932_a_coordinator_that_is_loading_or_elsewhere_says_so_without_a_text(play: SharePlay) -> None:
    play.settle_in("A")
    partition = play.cluster.partition_of("g")
    play._perform(play.coordinator.unload(play.now, partition))
    assert error(play, "g") == (Error.NOT_COORDINATOR, None)
    play._perform(play.coordinator.begin_load(play.now, partition))
    assert error(play, "g") == (Error.COORDINATOR_LOAD_IN_PROGRESS, None)
