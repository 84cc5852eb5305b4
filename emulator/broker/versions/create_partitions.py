"""CreatePartitions (37), versions 0-3: no version differs in anything the core could see.

Not emulated: timeouts; groups notice new partitions when their clients refresh metadata, as ever.
"""
