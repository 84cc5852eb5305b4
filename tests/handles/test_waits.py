"""The cost of a wait: it checks its condition only after events."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koordinator import Cluster


def test_waits_do_not_wake_each_other(koordinator: Cluster) -> None:
    control = koordinator._port.served.control  # type: ignore[attr-defined]
    looked = 0
    meets = control.operations["groups.meets"]

    def count(now: int, **arguments: object) -> object:
        nonlocal looked
        looked += 1
        return meets(now, **arguments)

    control.operations["groups.meets"] = count
    group = koordinator.group("g")
    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(group.wait_stable, timeout=0.5) for _ in range(4)]
        assert all(wait.exception(timeout=60) is not None for wait in waits)
    # each checks at its start, at its end, and when another one starts or reports its failure
    assert looked < 100
