"""`python -m koordinator.pipeline`: the command `koordinator-pipeline`, and the entry point for spark-submit."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
