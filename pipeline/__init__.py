"""Traces as tables. Reads the trace file; imports nothing of the emulator."""
