"""Produce (0), versions 0-13: append records.

v0-2 message sets of magic 0 and 1, which become a batch of magic 2 | v3 one batch of magic 2 for each
partition (87) | v7 zstd (76 below) | v8 error_message | v13 topic ids. All of it is in the core, which
looks at the version. Not emulated: transactions (48), LogAppendTime.
"""
