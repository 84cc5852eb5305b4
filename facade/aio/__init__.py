"""The same handles for asyncio and Trio: what blocks there is awaited here.

    from koordinator import aio

    async with aio.Emulator(topics={"orders": 4}) as cluster:
        await start_my_consumer(cluster.bootstrap_servers)
        group = cluster.group("svc")
        await group.wait_stable(members=1)
        async with group.expect_rebalance(cause="member_join"):
            ...
        assert await group.generation == 2

In a test that is async, `aio.Cluster(koordinator)` is the cluster of the fixture. Every handle has the one that blocks
as `blocking`. What is read there is awaited here (`await group.state`), what is a `with` there is an `async with` here;
what asks nobody (`cluster.group`, `cluster.bootstrap_servers`, `cluster.client_config`) is as it is. Arguments,
results and exceptions are the same.

`handles` is made from the handles that block: `make docs` renews it.
"""

from __future__ import annotations

from .handles import Cluster, Emulator, Group, Held, Lockstep, Node, Puppet, Rule

__all__ = ["Cluster", "Emulator", "Group", "Held", "Lockstep", "Node", "Puppet", "Rule"]
