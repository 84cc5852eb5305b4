"""A consumer of topic t in its own process: its library logs to stderr."""

from __future__ import annotations

import json
import logging
import sys

from clients.consumers import Member

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    member = Member(sys.argv[1], json.loads(sys.argv[2]), ["t"])
    sys.stdin.read(1)
    member.close()
