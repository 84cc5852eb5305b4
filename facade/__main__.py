"""`python -m koordinator` runs the command `koordinator`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main(prog_name="koordinator")
