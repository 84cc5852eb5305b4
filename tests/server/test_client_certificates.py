"""The principal of a client certificate: its subject as RFC 2253 writes it, mapped by rules (KIP-371)."""

from __future__ import annotations

import ssl

import pytest
from builders.acl_requests import request
from clients.asking_client import AskingClient

from koordinator import Cluster, Emulator
from koordinator.emulator.broker.authentication.distinguished_names import NoPrincipal, mapped, name_of
from koordinator.emulator.config.settings import STANDARD_AUTHORIZER
from koordinator.wire.apis import ApiKey
from koordinator.wire.errors import Error


def certificate(*attributes: tuple[str, str]) -> dict[str, object]:
    return {"subject": tuple((each,) for each in attributes)}


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (
            (("commonName", "carol"), ("organizationalUnitName", "test"), ("organizationName", "acme")),
            "O=acme,OU=test,CN=carol",
        ),
        ((("organizationName", "acme"), ("commonName", "carol")), "CN=carol,O=acme"),
        ((("commonName", 'a,b+c"d\\e<f>g;h=i'),), 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i'),
        ((("commonName", "#a"),), "CN=\\#a"),
        ((("commonName", " a "),), "CN=\\ a\\ "),
        ((), ""),
    ],
)
def test_the_name_is_the_subject_as_rfc_2253_writes_it(attributes: tuple[tuple[str, str], ...], name: str) -> None:
    assert name_of(certificate(*attributes)) == name


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", "CN=carol,OU=test,O=acme"),
        ("", "CN=carol,OU=test,O=acme"),
        ("RULE:^CN=(.*?),.*$/$1/", "carol"),
        ("RULE:^CN=(.*?),.*$/$1/U", "CAROL"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L", "carol@test"),
        ("RULE:^CN=nobody$/x/,RULE:^CN=(.*?),.*$/$1/,DEFAULT", "carol"),
        ("RULE:CN/x/,DEFAULT", "CN=carol,OU=test,O=acme"),
    ],
)
def test_the_first_rule_that_fits_the_whole_name_maps_it(rules: str, name: str) -> None:
    assert mapped("CN=carol,OU=test,O=acme", rules) == name


def test_a_name_that_no_rule_fits_is_no_principal() -> None:
    with pytest.raises(NoPrincipal, match=r"no rule of ssl\.principal\.mapping\.rules fits"):
        mapped("CN=carol", "RULE:^OU=.*$/x/")
    with pytest.raises(NoPrincipal, match="is not a valid regular expression"):
        mapped("CN=carol", "RULE:^CN=(.*$/$1/")


def heartbeat(cluster: Cluster, *, with_certificate: bool) -> Error | None:
    """Return the error of a heartbeat over TLS; None if the connection closes."""
    assert cluster.ca_file is not None
    settings = ssl.create_default_context(cafile=cluster.ca_file)
    if with_certificate:
        settings.load_cert_chain(cluster.ca_file.replace("ca.pem", "client.pem"))
    host, port = cluster.bootstrap_servers.split(":")
    with AskingClient((host, int(port)), settings) as client:
        asked = request(ApiKey.HEARTBEAT, group_id="g", generation_id=1, member_id="m")
        answer = client.ask(asked, 4)
        return None if answer is None else Error(answer.error_code)


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ("RULE:^CN=(.*?),.*$/$1/", Error.UNKNOWN_MEMBER_ID),
        ("DEFAULT", Error.GROUP_AUTHORIZATION_FAILED),
        ("RULE:^X.*$/x/", None),
    ],
    ids=["a rule names the super user", "the whole subject is another", "no rule fits"],
)
def test_a_client_has_the_rights_of_its_certificate(rules: str, named: Error | None) -> None:
    config = {
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": rules,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:client",
    }
    with Emulator(security="ssl", config=config) as cluster:
        assert heartbeat(cluster, with_certificate=False) is Error.GROUP_AUTHORIZATION_FAILED
        assert heartbeat(cluster, with_certificate=True) is named
