"""Errors of handles."""


class ClusterStopped(RuntimeError):
    """A handle was used after its cluster stopped. If the cluster died of a bug, that is the cause."""


class KoordinatorTimeout(AssertionError, TimeoutError):
    """A wait of a handle took longer than its timeout; the base of all of them. The text has what it observed."""


class BlockingCallInLoop(RuntimeError):
    """A blocking call was made in a thread that runs an asyncio or Trio loop."""


class EmulatorOnly(RuntimeError):
    """An operation of the emulator was called on a running Kafka, which does not have it."""


class InvalidArgument(ValueError, TypeError):
    """An argument of a handle's method has the wrong type. The text has the place, the value and the remedy."""


EXPECTED = (ValueError, AssertionError, OSError, ClusterStopped, BlockingCallInLoop, EmulatorOnly)
"""Errors that a call may raise without a bug in koordinator; PermissionError and ConnectionError are OSErrors."""
