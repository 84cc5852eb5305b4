"""Random request sequences, played to a real broker and to the core, and the comparison of their answers.

`generator` generates sequences, `core` and `brokers` play them, `comparison` compares, `shrinking` minimises a
difference, `rendering` renders it as a scenario.
"""
