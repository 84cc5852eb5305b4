"""Generate the control operations of the clients of other languages from the OpenAPI document (`make clients`)."""

from __future__ import annotations

from pathlib import Path

import client_go
import client_java
import client_node

CLIENTS = Path(__file__).parents[1] / "clients"

RENEW = "make clients"
"""The command that runs this program."""

FILES = {
    "go/operations.go": client_go.module,
    "node/src/operations.js": client_node.module,
}
"""The generated files, and the functions that return their texts."""

JAVA = CLIENTS / "java" / "koordinator" / "src" / "main" / "java" / "example" / "koordinator"
"""The folder of the generated classes of the client for Java, beside those written by hand."""


def generated_java() -> dict[str, str]:
    """Return the texts of the generated files of `JAVA` on disk, by name."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in JAVA.glob("*.java")}
    return {name: text for name, text in texts.items() if text.startswith(client_java.MARK)}


if __name__ == "__main__":
    for name, text in FILES.items():
        (CLIENTS / name).write_text(text(), encoding="utf-8")
    classes = client_java.files()
    for name in generated_java().keys() - classes.keys():
        (JAVA / name).unlink()
    for name, source in classes.items():
        (JAVA / name).write_text(source, encoding="utf-8")
