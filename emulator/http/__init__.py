"""The HTTP API of clusters: one route for each operation of `koordinator.emulator.control.operations`.

Needs the extra `koordinator[control]`; only the server and the remote handle import this package.
"""
