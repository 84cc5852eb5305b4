"""`make soak`: SIGKILL the server at random moments, on a data directory, while static members commit,
members of a share group accept records, and transactions run."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from brokers.soak import soak


def main() -> int:
    """Soak and print the results; return 1 if a commit was lost or a member disturbed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how often the server is killed  [default: 100]")
    parser.add_argument("--seed", type=int, default=1, help="decides the moments  [default: 1]")
    wishes = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="koordinator-soak-") as directory:
        figures = soak(Path(directory) / "data", wishes.kills, wishes.seed)
    for line in [*figures.lost, *figures.disturbed]:
        print(line)
    print(f"soak: {figures}; {time.monotonic() - begun:.0f} s, seed {wishes.seed}")
    return 1 if figures.lost or figures.disturbed or not figures.commits or not figures.accepted else 0


if __name__ == "__main__":
    sys.exit(main())
