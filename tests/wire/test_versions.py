import pytest

from koordinator.wire.versions import HIGHEST, Versions


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("0-9", 0, 9), ("6+", 6, HIGHEST), ("0+", 0, HIGHEST), ("2", 2, 2), ("3-3", 3, 3), ("10-12", 10, 12)],
)
def test_both_ends_are_included(text: str, first: int, last: int) -> None:
    versions = Versions(text)
    assert (versions.min, versions.max) == (first, last)
    assert first in versions
    assert last in versions
    assert first - 1 not in versions
    assert last + 1 not in versions


def test_none_has_no_version() -> None:
    assert list(Versions("none")) == []
    assert 0 not in Versions("none")
    assert -1 not in Versions("none")


def test_versions_are_iterated_in_order() -> None:
    assert list(Versions("3-6")) == [3, 4, 5, 6]


@pytest.mark.parametrize("text", ["", "a", "-1", "1-", "9-0", "1+2", "0 - 9", "0,1", "None", "1++"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="versions"):
        Versions(text)


@pytest.mark.parametrize("text", ["0-9", "6+", "2", "none"])
def test_versions_are_written_as_they_are_read(text: str) -> None:
    assert str(Versions(text)) == text
    assert repr(Versions(text)) == f'Versions("{text}")'


def test_versions_are_compared_by_their_ends() -> None:
    assert Versions("3-3") == Versions("3")
    assert hash(Versions("3-3")) == hash(Versions("3"))
    assert Versions("3") != Versions("3+")
    assert Versions("3") != "3"
