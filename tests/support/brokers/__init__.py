"""Brokers that tests talk to: the emulator without sockets, real Kafka, and scripted fakes."""
