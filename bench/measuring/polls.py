"""Long polls that never complete, each on its own connection: `{"url": …, "count": n}` begins, any line ends them."""

from __future__ import annotations

import json
import socket
import sys
from urllib.parse import urlsplit

PATH = "/v1/clusters/default/groups/another/wait?state=Stable&members=99&timeout=600"


def main() -> None:
    """Begin, report it, and wait for the end."""
    order = json.loads(sys.stdin.readline())
    place = urlsplit(order["url"])
    assert place.hostname is not None
    assert place.port is not None
    request = f"GET {PATH} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
    sockets = []
    for _ in range(order["count"]):
        sockets.append(socket.create_connection((place.hostname, place.port)))
        sockets[-1].sendall(request)
    print(json.dumps({"polls": len(sockets)}), flush=True)
    sys.stdin.readline()
    for connection in sockets:
        connection.close()
    print("{}", flush=True)


if __name__ == "__main__":
    main()
