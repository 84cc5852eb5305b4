"""The cluster as its own process, `koordinator serve`, with its live page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from bouncing.processes import PATIENCE_S

from koordinator import Remote

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

COMMAND = (
    *(sys.executable, "-m", "koordinator", "serve", "--port", "0", "--control-port", "0"),
    # the server ends with the demo, however that ends
    "--stop-with-stdin",
)


class Server:
    """Runs from `with` to its end; `remote` has its clusters, `page` is the address of the live page.

    `trace` is the trace file of the first cluster; its header has `run_id`.
    """

    def __init__(self, trace: Path | None = None, run_id: str = "demo") -> None:
        self._command = COMMAND if trace is None else (*COMMAND, "--trace", str(trace))
        self._environment = {**os.environ, "KOORDINATOR_RUN_ID": run_id}

    def __enter__(self) -> Self:
        # a Ctrl-C goes to the demo: the members end first
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        try:
            first_line = json.loads(self._process.stdout.readline())
        except BaseException:
            self._end()
            raise
        self.page = f"{first_line['control_url']}/"
        self.remote = Remote(first_line["control_url"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remote.close()
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.communicate(timeout=PATIENCE_S)
        finally:
            self._process.kill()
