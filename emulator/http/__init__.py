"""The control of clusters over HTTP: one route for each operation of `koordinator.emulator.control.control`.

Needs the extra `koordinator[control]`; nothing else imports this package.
"""
