"""The levers with nothing but curl, and a consumer that knows nothing of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from brokers.http_server import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "curl"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl found")
def test_a_commit_in_flight_during_a_rebalance_is_played_with_curl(served: Served) -> None:
    script = [EXAMPLE / "held_commit.sh", served.url, sys.executable, EXAMPLE / "consumer.py"]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "the commit is refused, once" in ran.stdout
    assert "not committed: KafkaError{code=UNKNOWN_MEMBER_ID" in ran.stdout
    assert "the consumer comes back by itself: a stable group of two" in ran.stdout
