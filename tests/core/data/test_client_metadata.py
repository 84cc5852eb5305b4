"""Client quotas and SCRAM credentials: stored with the metadata, and described (KIP-546, KIP-554)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers.cluster import Nodes

from koordinator.emulator.core.data.client_metadata import ClientMetadata
from koordinator.emulator.core.data.metadata_changes import ClientQuotaSet, ScramCredentialSet
from koordinator.emulator.storage.metadata_journal import TopicTable, changes_of, line_of
from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from koordinator.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from koordinator.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from koordinator.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

RATE = "producer_byte_rate"


def quota(value: float, *, remove: bool = False) -> EntryData:
    parts = (EntityData(entity_type="user", entity_name=None), EntityData(entity_type="client-id", entity_name="c"))
    return EntryData(entity=parts, ops=(OpData(key=RATE, value=value, remove=remove),))


def quotas(nodes: Nodes) -> list[Any]:
    return [
        ({part.entity_type: part.entity_name for part in row.entity}, {each.key: each.value for each in row.values})
        for row in nodes.request_at(2, DescribeClientQuotasRequest(), 1).entries
    ]


def test_every_node_describes_a_quota_until_it_is_removed() -> None:
    nodes = Nodes(2)
    for entry in (quota(5.0), quota(7.0)):
        nodes.request_at(1, AlterClientQuotasRequest(entries=(entry,)), 1)
    nodes.request_at(1, AlterClientQuotasRequest(entries=(quota(9.0),), validate_only=True), 1)
    assert quotas(nodes) == [({"client-id": "c", "user": None}, {RATE: 7.0})]
    nodes.request_at(1, AlterClientQuotasRequest(entries=(quota(0, remove=True),)), 1)
    assert quotas(nodes) == []


def test_quotas_are_described_in_the_order_of_the_brokers_map() -> None:
    """As a broker of 4.4.0 has described them after the same changes."""
    metadata = ClientMetadata()
    names: list[dict[str, str | None]] = [
        *({"user": f"u{number}"} for number in range(5)),
        *({"client-id": "c1"}, {"user": None}, {"user": "u1", "client-id": "c1"}, {"user": "alice", "client-id": None}),
        *({"ip": "10.0.0.1"}, {"client-id": None}, {"user": "bob"}, {"user": "zoe"}, {"client-id": "app"}),
    ]

    def described() -> str:
        return " ".join("+".join(str(name) for _, name in entity) for entity in metadata.quotas)

    for entity in names:
        metadata.apply(ClientQuotaSet(entity, "rate", 1000.0))
    metadata.apply(ClientQuotaSet(names[2], "rate", 2000.0))
    assert described() == "u1 u3 u2 u4 None+alice bob zoe c1+u1 c1 u0 app None 10.0.0.1 None"
    for entity in (names[0], names[3]):
        metadata.apply(ClientQuotaSet(entity, "rate", None))
    assert described() == "u1 c1+u1 u2 c1 u4 None+alice bob app None zoe 10.0.0.1 None"


def test_the_first_of_two_entries_of_an_entity_is_applied_and_the_second_refused() -> None:
    nodes = Nodes(2)
    (row,) = nodes.request_at(1, AlterClientQuotasRequest(entries=(quota(5.0), quota(7.0))), 1).entries
    assert (row.error_code, row.error_message) == (
        42,
        "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=c, user=null})",
    )
    assert [values for _, values in quotas(nodes)] == [{RATE: 5.0}]


def test_without_the_controller_a_broker_with_zookeeper_alters_no_credentials() -> None:
    nodes = Nodes(2, kafka_version="2.8")
    change = ScramCredentialUpsertion(name="a", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
    request = AlterUserScramCredentialsRequest(upsertions=(change,))
    rows = [nodes.request_at(node_id, request, 0).results for node_id in (2, 1)]
    assert [(row.user, row.error_code) for (row,) in rows] == [("a", 41), ("a", 0)]
    (described,) = nodes.request_at(2, DescribeUserScramCredentialsRequest(users=None), 0).results
    assert [(each.mechanism, each.iterations) for each in described.credential_infos] == [(1, 4096)]


def changes() -> Iterable[ClientQuotaSet | ScramCredentialSet]:
    yield ClientQuotaSet({"user": "a", "client-id": None}, RATE, 5.0)
    yield ClientQuotaSet({"ip": "::1"}, "connection_creation_rate", 3.0)
    yield ClientQuotaSet({"ip": "::1"}, "connection_creation_rate", None)
    yield ScramCredentialSet("a", 1, 4096)
    yield ScramCredentialSet("a", 2, 8192)
    yield ScramCredentialSet("a", 1, None)


def test_the_journal_keeps_quotas_and_credentials() -> None:
    table, again = TopicTable(), TopicTable()
    for change in changes_of(line_of(*changes())):
        table.apply(change)
    for change in changes_of(line_of(*table.changes())):
        again.apply(change)
    for each in (table, again):
        assert each.clients.quotas == {(("client-id", None), ("user", "a")): {RATE: 5.0}}
        (credential,) = each.clients.credentials["a"].values()
        assert (credential.mechanism, credential.iterations) == (2, 8192)
    assert not list(ClientMetadata().changes())
