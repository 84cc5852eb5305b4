"""Generate the control operations of the clients of other languages from the OpenAPI document (`make clients`)."""

from __future__ import annotations

from pathlib import Path

import client_go
import client_node

CLIENTS = Path(__file__).parents[1] / "clients"

RENEW = "make clients"
"""The command that runs this program."""

FILES = {
    "go/operations.go": client_go.module,
    "node/src/operations.js": client_node.module,
}
"""The generated files, and the functions that return their texts."""

if __name__ == "__main__":
    for name, text in FILES.items():
        (CLIENTS / name).write_text(text(), encoding="utf-8")
