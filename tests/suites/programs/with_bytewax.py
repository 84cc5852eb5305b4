"""A Bytewax dataflow that prints each value of a topic, up to its end."""

import sys

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSource
from bytewax.connectors.stdio import StdOutSink
from bytewax.dataflow import Dataflow
from bytewax.testing import cluster_main

servers, topic, _group = sys.argv[1:]
flow = Dataflow("flow")
values = op.input("in", flow, KafkaSource([servers], [topic], tail=False))
op.output("out", op.map("value", values, lambda message: message.value.decode()), StdOutSink())
cluster_main(flow, [], 0)
