"""The minimal Trio server: it echoes received bytes in one piece. It prints its port and ends with its input.

Frames that arrive together are answered together, so this is the fastest possible Trio server for requests and
responses of equal size.
"""

from __future__ import annotations

import json
from functools import partial

import trio


async def _echo(stream: trio.SocketStream) -> None:
    while True:
        try:
            data = await stream.receive_some(64 * 1024)
            if not data:
                return
            await stream.send_all(data)
        except trio.BrokenResourceError:
            return


async def main() -> None:
    """Serve until standard input ends."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, _echo, 0, host="127.0.0.1"))
        print(json.dumps({"port": listeners[0].socket.getsockname()[1]}), flush=True)
        async with trio.lowlevel.FdStream(0) as stdin:
            await stdin.receive_some(1)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
