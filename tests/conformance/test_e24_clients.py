"""E.24: ACLs, tokens, quotas and credentials of a cluster without security, and voters of a fixed quorum.

Brokers have no authorizer, and their listener is plain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from scenarios.registry import scenario
from scenarios.targets import raw_header

from koordinator.wire import frames
from koordinator.wire.apis import ApiKey
from koordinator.wire.codec import encode
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
from koordinator.wire.schema import declaration_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenarios.player import Player

USER, CLIENT, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = range(3)
SHA_256, SHA_512 = 1, 2
ALLOW = TOPIC = LITERAL = READ = 3
MUCH = 1e12
"""A rate that no client reaches."""


def versions(play: Player, api: ApiKey) -> list[int]:
    return [version for version in range(4) if play.serves(api, version)]


@scenario(kip="KIP-140")
def test_e970_without_an_authorizer_there_are_no_acls(play: Player) -> None:
    filtered: dict[str, Any] = {
        "resource_type_filter": TOPIC,
        "principal_filter": "User:a",
        "operation": READ,
        "permission_type": ALLOW,
    }
    created = AclCreation(
        resource_type=TOPIC, resource_name="t", principal="User:a", host="*", operation=READ, permission_type=ALLOW
    )
    nameless = AclCreation(resource_type=TOPIC, principal="a", host="*", operation=READ, permission_type=ALLOW)
    for version in versions(play, ApiKey.DESCRIBE_ACLS):
        play.slowly(DescribeAclsRequest(**filtered), version, recorded=True)
        play.slowly(CreateAclsRequest(creations=(created, nameless)), version, recorded=True)
        play.slowly(CreateAclsRequest(creations=()), version, recorded=True)
        play.slowly(DeleteAclsRequest(filters=(DeleteAclsFilter(**filtered),) * 2), version, recorded=True)


@scenario(kip="KIP-140")
def test_e971_an_acl_with_an_unknown_element_is_not_read(play: Player) -> None:
    filtered = DeleteAclsFilter(resource_type_filter=TOPIC, operation=0, permission_type=ALLOW)
    created = AclCreation(resource_type=TOPIC, resource_name="t", principal="User:a", host="*", permission_type=ALLOW)
    for version in versions(play, ApiKey.DESCRIBE_ACLS):
        for request in (
            DescribeAclsRequest(resource_type_filter=0, operation=READ, permission_type=ALLOW),
            CreateAclsRequest(creations=(created,)),
            DeleteAclsRequest(filters=(filtered,)),
        ):
            if not play.since("2.8.0"):
                play.slowly(request, version, recorded=True)
                continue
            api = ApiKey(declaration_of(type(request)).key or 0)
            head = raw_header(api, version, 1, "c", has_tags=version > 1)
            play.expect_closed(play.send(frames.frame(head, encode(request, version))))


@scenario(kip="KIP-48")
def test_e972_a_plain_listener_has_no_delegation_tokens(play: Player) -> None:
    renewers = (CreatableRenewers(principal_type="User", principal_name="r"),)
    owners = (DescribeDelegationTokenOwner(principal_type="User", principal_name="a"),)
    for version in versions(play, ApiKey.CREATE_DELEGATION_TOKEN):
        play.slowly(CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1), version, recorded=True)
        if version > 2:
            for owner in ({"owner_principal_name": "a"}, {"owner_principal_name": None, "owner_principal_type": None}):
                request = CreateDelegationTokenRequest(**({"owner_principal_type": "User"} | owner))
                play.slowly(request, version, recorded=True)
    for version in versions(play, ApiKey.DESCRIBE_DELEGATION_TOKEN):
        for named in (None, (), owners):
            play.slowly(DescribeDelegationTokenRequest(owners=named), version, recorded=True)
    for version in versions(play, ApiKey.RENEW_DELEGATION_TOKEN):
        play.slowly(RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1000), version, recorded=True)
        play.slowly(ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=-1), version, recorded=True)


def alter(
    play: Player,
    names: Mapping[str, str | None],
    *ops: tuple[str, float | None],
    version: int = 1,
    validate: bool = False,
    times: int = 1,
) -> None:
    """Alter the quotas of an entity; None removes one."""
    parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in names.items())
    rows = tuple(OpData(key=key, value=value or 0, remove=value is None) for key, value in ops)
    entries = (EntryData(entity=parts, ops=rows),) * times
    play.slowly(AlterClientQuotasRequest(entries=entries, validate_only=validate), version, recorded=True)


def described(play: Player, *filters: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """Return a DescribeClientQuotas response."""
    components = tuple(ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in filters)
    return play.ask(DescribeClientQuotasRequest(components=components, strict=strict), version).unrecorded()


def quotas(answer: Any, play: Player) -> list[str]:
    """Return the rows of this scenario: an entity with its quotas."""
    return sorted(
        f"{names} {sorted((row.key, row.value) for row in entry.values)}".replace(play.g, "g")
        for entry in answer.entries
        for names in [sorted((part.entity_type, str(part.entity_name)) for part in entry.entity)]
    )


@scenario(kip="KIP-546")
def test_e973_quotas_are_stored_and_described(play: Player) -> None:
    play.needs(ApiKey.ALTER_CLIENT_QUOTAS, 1)
    a, b, c = (f"{play.g}-{each}" for each in "abc")
    rate = ("producer_byte_rate", MUCH)
    filters: Iterable[tuple[tuple[tuple[str, int, str | None], ...], bool]] = (
        (((USER, EXACT, a),), False),
        (((USER, EXACT, a),), True),
        (((USER, EXACT, a), (CLIENT, DEFAULT, None)), True),
        (((USER, EXACT, a), (CLIENT, ANY, None)), True),
        (((USER, EXACT, a), (CLIENT, EXACT, c)), False),
        (((CLIENT, EXACT, c),), False),
        (((CLIENT, EXACT, c),), True),
        (((USER, EXACT, b),), False),
        (((IP, EXACT, "10.255.0.1"),), True),
        (((IP, ANY, None),), False),
    )

    def wait_count(wanted: int, version: int) -> None:
        def has_rows() -> bool:
            answers = [described(play, *each, strict=strict, version=version) for each, strict in filters]
            return sum(len(answer.entries) for answer in answers) == wanted

        play.wait_until(f"{wanted} rows of quotas", has_rows)

    for version in (0, 1):
        alter(play, {USER: a}, rate, ("request_percentage", 99.5), version=version)
        alter(play, {USER: b}, rate, version=version, validate=True)
        alter(play, {USER: a, CLIENT: c}, rate, version=version)
        alter(play, {USER: a, CLIENT: None}, ("consumer_byte_rate", MUCH), version=version)
        alter(play, {CLIENT: c}, ("controller_mutation_rate", 1e6), version=version)
        alter(play, {IP: "10.255.0.1"}, ("connection_creation_rate", 1e6), version=version)
        wait_count(13, version)
        for each, strict in filters:
            answer = described(play, *each, strict=strict, version=version)
            assert (answer.error_code, answer.throttle_time_ms) == (0, 0)
            play.transcript.add("quotas", version, f"{answer.error_message!r} {quotas(answer, play)}")
        alter(play, {USER: a}, ("request_percentage", None), ("consumer_byte_rate", None), version=version)
        play.wait_until("a removed quota", lambda: "99.5" not in str(described(play, (USER, EXACT, a))))
        play.transcript.add("quotas", version, str(quotas(described(play, (USER, EXACT, a)), play)))
        for names, key in (
            ({USER: a}, "producer_byte_rate"),
            ({USER: a, CLIENT: c}, "producer_byte_rate"),
            ({USER: a, CLIENT: None}, "consumer_byte_rate"),
            ({CLIENT: c}, "controller_mutation_rate"),
            ({IP: "10.255.0.1"}, "connection_creation_rate"),
        ):
            alter(play, names, (key, None), version=version)
        wait_count(0, version)


@scenario(kip="KIP-546")
def test_e974_quotas_are_refused_with_the_reason(play: Player) -> None:
    play.needs(ApiKey.ALTER_CLIENT_QUOTAS, 1)
    a, rate = {USER: f"{play.g}-a"}, "producer_byte_rate"
    for names, ops in (
        (a, (("no.such", 1),)),
        (a, ((rate, 1.5),)),
        (a, ((rate, 1e300),)),
        (a, (("connection_creation_rate", 1),)),
        (a, (("no.such", None),)),
        (a, (("consumer_byte_rate", MUCH), ("no.such", 1))),
        ({}, ((rate, MUCH),)),
        ({"planet": "x"}, ((rate, MUCH),)),
        ({USER: ""}, ((rate, MUCH),)),
        ({CLIENT: "", USER: "x"}, ((rate, MUCH),)),
        ({IP: "10.255.0.1", USER: "x"}, (("connection_creation_rate", 1),)),
        ({IP: "nosuch.invalid"}, (("connection_creation_rate", 1),)),
        ({IP: "10.255.0.1"}, ((rate, MUCH),)),
        ({IP: "10.255.0.1"}, (("connection_creation_rate", 1.5),)),
        ({IP: "10.255.0.1"}, (("connection_creation_rate", 1e10),)),
    ):
        alter(play, names, *ops, validate=True)
    for value in (0.0, -1.0):
        alter(play, a, (rate, value), validate=True)
    alter(play, a, (rate, 1), (rate, 2), validate=True)
    alter(play, a, (rate, 1), validate=True, times=2)


@scenario(kip="KIP-546")
def test_e975_filters_of_quotas_are_refused_with_the_reason(play: Player) -> None:
    play.needs(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1)
    for filters in (
        (("", EXACT, "x"),),
        (("planet", EXACT, "x"),),
        ((USER, EXACT, "x"), (USER, ANY, None)),
        ((CLIENT, EXACT, "x"), (CLIENT, ANY, None)),
        ((USER, ANY, None), (IP, ANY, None)),
        ((USER, EXACT, None),),
        ((USER, 7, None),),
    ):
        for version in (0, 1):
            answer = described(play, *filters, version=version)
            assert answer.entries is None
            play.transcript.add("DescribeClientQuotas", version, answer)
    for filters in (((USER, DEFAULT, "x"),), ((USER, ANY, "x"),)):
        answer = described(play, *filters)
        play.transcript.add("DescribeClientQuotas", 1, f"{answer.error_code} {answer.error_message}")


def upsert(name: str, mechanism: int = SHA_256, iterations: int = 4096, **more: bytes) -> ScramCredentialUpsertion:
    content = {"salt": b"salt", "salted_password": b"p" * 32} | more
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, **content)


def delete(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def credentials(play: Player, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> None:
    """Alter credentials."""
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(each for each in changes if isinstance(each, ScramCredentialDeletion)),
        upsertions=tuple(each for each in changes if isinstance(each, ScramCredentialUpsertion)),
    )
    play.slowly(request, 0, recorded=True)


def users(play: Player, *names: str) -> Any:
    request = DescribeUserScramCredentialsRequest(users=tuple(UserName(name=name) for name in names) or None)
    return play.ask(request, 0).unrecorded()


def known(play: Player, *names: str) -> dict[str, list[tuple[int, int]]]:
    """Return mechanisms and iterations of this scenario's users."""
    return {
        row.user.replace(play.g, "g"): sorted((each.mechanism, each.iterations) for each in row.credential_infos)
        for row in sorted(users(play, *names).results, key=lambda row: row.user)
        if row.user.startswith(play.g)
    }


@scenario(kip="KIP-554")
def test_e976_credentials_are_stored_and_described(play: Player) -> None:
    play.needs(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0)
    a, b = f"{play.g}-a", f"{play.g}-b"
    credentials(play, upsert(a), upsert(b, SHA_512, 8192))
    credentials(play, upsert(a, SHA_512, 16384))
    wanted = {"g-a": [(1, 4096), (2, 16384)], "g-b": [(2, 8192)]}
    play.wait_until("credentials of two users", lambda: known(play) == wanted)
    assert (known(play, a), known(play, b)) == ({"g-a": wanted["g-a"]}, {"g-b": wanted["g-b"]})
    for named in ((f"{play.g}-no",), (b, b), ("",), (b,)):
        play.transcript.add("DescribeUserScramCredentials", 0, users(play, *named))
    credentials(play, upsert(b, SHA_512, 4096))
    play.wait_until("a replaced credential", lambda: known(play, b) == {"g-b": [(2, 4096)]})
    credentials(play, delete(a), delete(b, SHA_512))
    play.wait_until("one credential", lambda: known(play) == {"g-a": [(2, 16384)]})
    credentials(play, delete(a, SHA_512))
    play.wait_until("no credentials", lambda: not known(play))


@scenario(kip="KIP-554")
def test_e977_credentials_are_refused_with_the_reason(play: Player) -> None:
    play.needs(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0)
    a = f"{play.g}-a"
    for changes in (
        (upsert(a, iterations=4095),),
        (upsert(a, iterations=16385),),
        (upsert(""),),
        (upsert(a, 3),),
        (upsert(a, 0),),
        (delete(a),),
        (delete(""),),
        (delete(a, 7),),
        (upsert(a), upsert(a)),
        (delete(a), upsert(a)),
        (delete(a), delete(a)),
        (upsert(a, salted_password=b""),),
        (),
    ):
        credentials(play, *changes)
    assert not known(play)
    # with ZooKeeper a user may have several changes
    credentials(play, upsert(a), upsert(a, SHA_512))
    if not play.since("3.3.0"):
        credentials(play, delete(a), delete(a, SHA_512))
    credentials(play, upsert(a, salt=b""))
    credentials(play, delete(a))
    play.wait_until("no credentials", lambda: not known(play))


@scenario(kip="KIP-853")
def test_e978_the_voters_of_a_fixed_quorum_do_not_change(play: Player) -> None:
    play.needs(ApiKey.ADD_RAFT_VOTER, 0)
    directory = UUID(int=7)
    controller = Listener(name="controller", host="localhost", port=9)
    other = Listener(name="OTHER", host="localhost", port=9)
    for version in versions(play, ApiKey.ADD_RAFT_VOTER):
        for voter, where, listeners in (
            (2, directory, (controller,)),
            (2, directory, (other,)),
            (2, directory, ()),
            (2, UUID(int=0), (controller,)),
            (-1, directory, (controller,)),
        ):
            request = AddRaftVoterRequest(
                cluster_id=None, timeout_ms=1000, voter_id=voter, voter_directory_id=where, listeners=listeners
            )
            play.slowly(request, version, recorded=True)
    for voter, where in ((1, directory), (1, UUID(int=0)), (-1, directory)):
        play.slowly(RemoveRaftVoterRequest(cluster_id=None, voter_id=voter, voter_directory_id=where), 0, recorded=True)
    answer = play.slowly(AddRaftVoterRequest(cluster_id="other", voter_id=2, voter_directory_id=directory), 0)
    assert answer.error_code == 104
