"""Scenarios played to running brokers and to the emulator, and the comparison of their answers."""
