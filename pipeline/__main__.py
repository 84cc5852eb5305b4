"""`python -m koordinator.pipeline`: the command `koordinator-pipeline`, and the entry point for spark-submit."""

from __future__ import annotations

# absolute: spark-submit runs this file by its path
from koordinator.pipeline.cli import main

if __name__ == "__main__":
    main()
