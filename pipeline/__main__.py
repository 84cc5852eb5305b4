"""`python -m koordinator.pipeline`: the same as the command `koordinator-pipeline`, and the file for spark-submit."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
