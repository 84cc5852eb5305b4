"""The image's health check: exit status 0 if /healthz succeeds. It imports only fast modules."""

import os
import socket
import sys


def main() -> int:
    """Request /healthz; return 0 if it succeeds, else 1."""
    try:
        with socket.create_connection(("127.0.0.1", int(os.environ["KOORDINATOR_CONTROL_PORT"])), 2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b" 200 " not in connection.recv(64)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
