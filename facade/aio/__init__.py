"""The handles for asyncio and Trio: every blocking call is awaited.

    from koordinator import aio

    async with aio.Emulator(topics={"orders": 4}) as cluster:
        await start_my_consumer(cluster.bootstrap_servers)
        group = cluster.group("svc")
        await group.wait_stable(members=1)
        async with group.expect_rebalance(cause="member_join"):
            ...
        assert await group.generation == 2

In an async test `aio.Cluster(koordinator)` is the cluster of the fixture. Each handle has its blocking handle as
`blocking`. Properties are awaited (`await group.state`), and context managers need `async with`. Members that do not
call the cluster stay synchronous: `cluster.group`, `cluster.topic`, `cluster.bootstrap_servers`,
`cluster.client_config`. Arguments, results and exceptions are the same.
"""

from __future__ import annotations

from . import handles
from .handles import *  # noqa: F403 - all of its handles

__all__ = handles.__all__
