"""A job that cannot start or that fails says why in one line."""

from __future__ import annotations

import pytest

from koordinator.emulator.config.install_hint import install_hint
from koordinator.pipeline import cli
from koordinator.pipeline.job_errors import explain

MESSAGES = {
    ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file"
    " file:///data/x.jsonl.gz.  SQLSTATE: KD001\n\tat org.apache.spark\nCaused by: java.io.EOFException: Unexpected end"
    " of input stream\n\tat org": (
        "file:///data/x.jsonl.gz cannot be read (EOFException: Unexpected end of input stream)."
        " Repair or remove it, and run the command again"
    ),
    "Caused by: java.io.IOException: No space left on device\n": (
        "the disk is full. Free some space and run the command again"
    ),
    "[PATH_NOT_FOUND] Path does not exist: s3a://b/x. SQLSTATE: 42K03": "s3a://b/x: no such file or folder",
    "something else": None,
}


@pytest.mark.parametrize("text", MESSAGES)
def test_a_long_spark_exception_becomes_one_line(text: str) -> None:
    assert explain(RuntimeError(text)) == MESSAGES[text]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_invalid_requests_are_refused_before_spark_starts(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path_factory.mktemp("here")
    run, there, store = "koordinator-pipeline: ", str(here), str(here / "store")
    assert refused(["run", "--input", f"{here}/x", "--output", store], capsys) == (
        f"{run}--input {here}/x: no such file or folder"
    )
    assert refused(["run", "--input", there, "--output", store], capsys) == (
        f"{run}--output {store} is inside --input {here}: choose a folder outside of it"
    )
    assert refused(["run", "--input", there, "--output", "/s", "--conf", "memory=4g"], capsys) == (
        "koordinator-pipeline run: Invalid value for '--conf': 'memory=4g': expected NAME=VALUE with a name that"
        " starts with 'spark.'"
    )
    assert refused(["run", "--input", there, "--output", "/s", "--markdown", "summary.md"], capsys) == (
        "koordinator-pipeline run: --markdown writes the summary of a page: add --html FILE"
    )


def test_the_message_for_missing_pyspark_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    message = f"pyspark is not installed: {install_hint('spark')} (Python 3.11-3.14)"
    assert refused(["run"], capsys).endswith(message)
