import pytest
from marks.cases import case

from koordinator.wire.apis import APIS, ApiKey
from koordinator.wire.frames import read_response_header, response_header
from koordinator.wire.primitives import Malformed


def test_every_response_header_is_read_as_it_was_written() -> None:
    for api in APIS.values():
        for version in api.versions:
            with case(api.name, version):
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
