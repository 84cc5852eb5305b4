"""Names for the cases of a loop: one test plays them all, and a failure names its case."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def case(*names: object) -> Iterator[None]:
    """Add the names of this case to whatever the block raises, a failed `pytest.raises` included."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {' '.join(map(str, names))}")
        raise
