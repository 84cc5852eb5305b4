import pytest

from koordinator.wire.apis import APIS, Api, ApiKey
from koordinator.wire.frames import read_response_header, response_header
from koordinator.wire.primitives import Malformed

CASES = [pytest.param(api, version, id=f"{api.name}-{version}") for api in APIS.values() for version in api.versions]


@pytest.mark.parametrize(("api", "version"), CASES)
def test_every_response_header_is_read_as_it_was_written(api: Api, version: int) -> None:
    data = response_header(api.key, version, -5)
    assert read_response_header(api.key, version, data + b"body") == (-5, len(data))
    for end in range(len(data)):
        with pytest.raises(Malformed):
            read_response_header(api.key, version, data[:end])


def test_unknown_tagged_fields_of_a_response_header_are_skipped() -> None:
    data = bytes.fromhex("00000007 01 05 02 6162")
    assert read_response_header(ApiKey.HEARTBEAT, 4, data + b"body") == (7, len(data))


def test_tagged_fields_may_come_twice() -> None:
    data = bytes.fromhex("00000007 02 05 00 05 00")
    assert read_response_header(ApiKey.HEARTBEAT, 4, data) == (7, len(data))
