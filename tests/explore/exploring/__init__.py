"""Random sequences of requests, played to a real broker and to the core, and what both said compared.

`authors` writes sequences, `core` and `brokers` play them, `comparing` compares, `shrinking` makes what differs
short, `telling` writes it down.
"""
