"""The users of a cluster at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.data.scram import MECHANISMS, credential_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.cluster import ClusterState


def add_users(cluster: ClusterState, users: Mapping[str, str]) -> None:
    """Let users log in with their passwords, by PLAIN and by SCRAM. Raises RefusedError if they cannot be stored.

    A data directory keeps the credentials of SCRAM that it has: clients may have changed them.
    """
    clients = cluster.clients
    clients.passwords.update(users)
    cluster.storage.propose(
        *(
            credential_of(user, mechanism, password, cluster.new_uuid().bytes)
            for user, password in users.items()
            for mechanism in MECHANISMS
            if mechanism not in clients.credentials.get(user, {})
        )
    )
