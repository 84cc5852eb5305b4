"""IncrementalAlterConfigs (44), versions 0-1: no version differs in anything the core could see (KIP-339).

Not emulated: configs of brokers, loggers and groups (42).
"""
