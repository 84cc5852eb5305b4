"""The rules: messages and time in, effects out. No bytes, no clock, no chance, no I/O."""
