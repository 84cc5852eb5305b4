"""`functools.cached_property` without a lock.

Spark sends the classes of this package to workers that have no koordinator, and until Python 3.12 a lock in the class
prevents that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801 - used like property
        """A property whose value is computed once for each instance."""

        def __init__(self, compute: Any) -> None:  # noqa: ANN401 - as functools does
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:  # noqa: ANN401
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


__all__ = ["lazy"]
