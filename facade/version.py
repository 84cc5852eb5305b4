"""The version of this package, for modules that must not import the handles."""

from __future__ import annotations

__version__ = "0.2.0"
