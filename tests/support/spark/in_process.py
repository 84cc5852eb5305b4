"""Commands of the pipeline in the process and the Spark session of the tests, so that they start no Java."""

from __future__ import annotations

import io
import subprocess
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from koordinator.pipeline import cli

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession


def run_in_process(spark: SparkSession, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `koordinator-pipeline` with these arguments in a folder, on the Spark of the tests."""
    output, errors = io.StringIO(), io.StringIO()
    job = import_module(cli.Jobs.modules[arguments[0]])
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.chdir(folder)
        # jobs that need no Spark have none
        patch.setattr(job, "open_session", lambda **_: nullcontext(spark), raising=False)
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess(list(arguments), ended.value.code, output.getvalue(), errors.getvalue())
