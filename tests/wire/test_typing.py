"""mypy reports the errors that tests/wire/mistyped_messages.py expects with `type: ignore`."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

import koordinator.wire.schema

CLAIMS = Path(__file__).parent / "mistyped_messages.py"


@pytest.mark.slow
def test_mypy_finds_the_mistakes_in_using_and_declaring_messages_and_no_others(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # a missing error makes its `type: ignore` unused, which is an error, too
    root = str(Path(koordinator.wire.schema.__file__).parents[2])
    installed = root in {*site.getsitepackages(), site.getusersitepackages()}
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={os.devnull}", str(CLAIMS)],
        env=os.environ | ({} if installed else {"MYPYPATH": root}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
