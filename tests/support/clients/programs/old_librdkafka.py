"""A consumer of an old librdkafka, without its Python: reads a record of a group, commits it and prints its value.

Arguments: the shared library, the address, settings as name=value.
"""

from __future__ import annotations

import ctypes
import sys
import time
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

CONSUMER = 1
LIMIT_S = 15


class Message(Structure):
    """`rd_kafka_message_t`."""

    _fields_ = (
        ("error", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("length", c_size_t),
        ("key", c_void_p),
        ("key_length", c_size_t),
        ("offset", c_int64),
        ("private", c_void_p),
    )


library = ctypes.CDLL(sys.argv[1])
library.rd_kafka_conf_new.restype = c_void_p
library.rd_kafka_conf_set.argtypes = [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]
library.rd_kafka_new.argtypes = [c_int, c_void_p, c_char_p, c_size_t]
library.rd_kafka_new.restype = c_void_p
library.rd_kafka_poll_set_consumer.argtypes = [c_void_p]
library.rd_kafka_topic_partition_list_new.restype = c_void_p
library.rd_kafka_topic_partition_list_add.argtypes = [c_void_p, c_char_p, c_int32]
library.rd_kafka_subscribe.argtypes = [c_void_p, c_void_p]
library.rd_kafka_consumer_poll.argtypes = [c_void_p, c_int]
library.rd_kafka_consumer_poll.restype = POINTER(Message)
library.rd_kafka_commit_message.argtypes = [c_void_p, POINTER(Message), c_int]
library.rd_kafka_consumer_close.argtypes = [c_void_p]

settings = {
    "bootstrap.servers": sys.argv[2],
    "group.id": "g",
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    **dict(each.split("=") for each in sys.argv[3:]),
}
why = ctypes.create_string_buffer(512)
conf = library.rd_kafka_conf_new()
for name, value in settings.items():
    assert library.rd_kafka_conf_set(conf, name.encode(), value.encode(), why, 512) == 0, why.value
consumer = library.rd_kafka_new(CONSUMER, conf, why, 512)
assert consumer, why.value
library.rd_kafka_poll_set_consumer(consumer)
topics = library.rd_kafka_topic_partition_list_new(1)
library.rd_kafka_topic_partition_list_add(topics, b"t", -1)
library.rd_kafka_subscribe(consumer, topics)
end = time.monotonic() + LIMIT_S
while time.monotonic() < end:
    message = library.rd_kafka_consumer_poll(consumer, 100)
    if message and not message.contents.error:
        assert library.rd_kafka_commit_message(consumer, message, 0) == 0
        sys.stdout.write(ctypes.string_at(message.contents.payload, message.contents.length).decode() + "\n")
        library.rd_kafka_consumer_close(consumer)
        sys.exit()
sys.exit(f"no record within {LIMIT_S} s")
