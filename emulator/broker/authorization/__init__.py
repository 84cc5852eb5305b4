"""The rights that each API needs, and the responses to clients that lack them."""
