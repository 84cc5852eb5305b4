"""A full request of each API for ACLs, tokens, quotas, credentials and voters that changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from koordinator.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from koordinator.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from koordinator.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from koordinator.wire.messages.create_acls import AclCreation, CreateAclsRequest
from koordinator.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from koordinator.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from koordinator.wire.messages.describe_acls import DescribeAclsRequest
from koordinator.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from koordinator.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from koordinator.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from koordinator.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from koordinator.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from koordinator.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

if TYPE_CHECKING:
    from builders.full_requests import Asked

TOPIC = READ = ALLOW = 3
PREFIXED = 4
SHA_256 = 1
DIRECTORY = UUID(int=7)


def describe_acls(_: Asked, __: int) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter="t",
        pattern_type_filter=PREFIXED,
        principal_filter="User:a",
        host_filter="*",
        operation=READ,
        permission_type=ALLOW,
    )


def create_acls(_: Asked, __: int) -> CreateAclsRequest:
    row = AclCreation(
        resource_type=TOPIC,
        resource_name="t",
        resource_pattern_type=PREFIXED,
        principal="User:a",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    return CreateAclsRequest(creations=(row,))


def delete_acls(_: Asked, __: int) -> DeleteAclsRequest:
    row = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter="t",
        pattern_type_filter=PREFIXED,
        principal_filter="User:a",
        host_filter="*",
        operation=READ,
        permission_type=ALLOW,
    )
    return DeleteAclsRequest(filters=(row,))


def create_delegation_token(_: Asked, __: int) -> CreateDelegationTokenRequest:
    renewers = (CreatableRenewers(principal_type="User", principal_name="r"),)
    return CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="a", renewers=renewers, max_lifetime_ms=60_000
    )


def renew_delegation_token(_: Asked, __: int) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=60_000)


def expire_delegation_token(_: Asked, __: int) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=60_000)


def describe_delegation_token(_: Asked, __: int) -> DescribeDelegationTokenRequest:
    owners = (DescribeDelegationTokenOwner(principal_type="User", principal_name="a"),)
    return DescribeDelegationTokenRequest(owners=owners)


def describe_client_quotas(_: Asked, __: int) -> DescribeClientQuotasRequest:
    component = ComponentData(entity_type="user", match_type=0, match="a")
    return DescribeClientQuotasRequest(components=(component,), strict=True)


def alter_client_quotas(_: Asked, __: int) -> AlterClientQuotasRequest:
    parts = (EntityData(entity_type="user", entity_name="a"),)
    entry = EntryData(entity=parts, ops=(OpData(key="request_percentage", value=50.5),))
    return AlterClientQuotasRequest(entries=(entry,), validate_only=True)


def describe_user_scram_credentials(_: Asked, __: int) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=(UserName(name="nobody"),))


def alter_user_scram_credentials(_: Asked, __: int) -> AlterUserScramCredentialsRequest:
    deletion = ScramCredentialDeletion(name="nobody", mechanism=SHA_256)
    few = ScramCredentialUpsertion(
        name="few", mechanism=SHA_256, iterations=1, salt=b"salt", salted_password=b"password"
    )
    return AlterUserScramCredentialsRequest(deletions=(deletion,), upsertions=(few,))


def add_raft_voter(_: Asked, __: int) -> AddRaftVoterRequest:
    listeners = (Listener(name="CONTROLLER", host="localhost", port=9),)
    return AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1_000,
        voter_id=2,
        voter_directory_id=DIRECTORY,
        listeners=listeners,
        ack_when_committed=False,
    )


def remove_raft_voter(_: Asked, __: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=DIRECTORY)


REQUESTS = (
    describe_acls,
    create_acls,
    delete_acls,
    create_delegation_token,
    renew_delegation_token,
    expire_delegation_token,
    describe_delegation_token,
    describe_client_quotas,
    alter_client_quotas,
    describe_user_scram_credentials,
    alter_user_scram_credentials,
    add_raft_voter,
    remove_raft_voter,
)
"""The builders, each named after its API."""
