"""Write orders with Avro's serializer, or read all orders: their schema is in a registry, each record has its id.

`write` prints the id of the schema, `read` each order, and `refuse` the answer to a schema that is not compatible.
"""

import json
import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

FIELD_ID = {"name": "id", "type": "string"}
ORDER = {"type": "record", "name": "Order", "fields": [FIELD_ID, {"name": "amount", "type": "int"}]}
OTHER = {"type": "record", "name": "Order", "fields": [FIELD_ID, {"name": "amount", "type": "boolean"}]}
COUNT = 5
READ_S = 60

act, servers, url, topic = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
context = SerializationContext(topic, MessageField.VALUE)

if act == "write":
    serialize = AvroSerializer(registry, json.dumps(ORDER))
    producer = Producer({"bootstrap.servers": servers})
    for number in range(COUNT):
        producer.produce(topic, serialize({"id": f"o{number}", "amount": number}, context))
    producer.flush()
    print(registry.lookup_schema(f"{topic}-value", Schema(json.dumps(ORDER), "AVRO")).schema_id, flush=True)
elif act == "read":
    deserialize = AvroDeserializer(registry)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "svc", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=READ_S)
    for _ in range(end):
        record = consumer.poll(READ_S)
        print(json.dumps(deserialize(record.value(), context)), flush=True)
    consumer.close()
else:
    registry.set_compatibility(f"{topic}-value", "BACKWARD")
    try:
        print(registry.register_schema(f"{topic}-value", Schema(json.dumps(OTHER), "AVRO")), flush=True)
    except SchemaRegistryError as error:
        print(error.http_status_code, flush=True)
