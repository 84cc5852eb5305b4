"""Sample records, with nulls and headers, and the codecs for tests of record batches."""

from koordinator.wire.records import Record

CODECS = ("gzip", "snappy", "lz4", "zstd")
MIB = 1024 * 1024

RECORDS = [
    Record(0, 1_700_000_000_000, b"k", b"value " * 200),
    Record(1, 1_700_000_000_005, None, None),
    Record(2, 1_699_999_999_000, b"", b"", (("h", b"1"), ("h", None), ("ü", b""))),
]
