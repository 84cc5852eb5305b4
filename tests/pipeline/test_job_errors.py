"""What stops a job is said in one line."""

from __future__ import annotations

import pytest

from koordinator.pipeline import cli
from koordinator.pipeline.job_errors import explain

IN_A_STREAM = (
    "[STREAM_FAILED] Query [id = 7e68] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred"
    " in the user provided function.\nTraceback (most recent call last):\n"
)

SAID = {
    IN_A_STREAM + ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file"
    " file:///data/x.jsonl.gz.  SQLSTATE: KD001\n\tat org.apache.spark\nCaused by: java.io.EOFException: Unexpected end"
    " of input stream\n\tat org": (
        "file:///data/x.jsonl.gz cannot be read (EOFException: Unexpected end of input stream)."
        " Repair or remove it, and run this again"
    ),
    "Failed to read log file file:/s/checkpoint/text/offsets/0. [INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION]"
    " UnsupportedLogVersion. The maximum supported log version is v2, but encountered v9.": (
        "/s/checkpoint was written by another version of Spark. Use that one, or load the inputs into a new store"
    ),
    IN_A_STREAM + "Caused by: java.io.IOException: No space left on device\n": (
        "the disk is full. Make room and run this again: it goes on where it stopped"
    ),
    "[PATH_NOT_FOUND] Path does not exist: s3a://b/x. SQLSTATE: 42K03": "s3a://b/x: no such file or folder",
    "something else": None,
}


@pytest.mark.parametrize("text", SAID)
def test_what_spark_says_in_many_lines_is_said_in_one(text: str) -> None:
    assert explain(RuntimeError(text), "/s") == SAID[text]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_cannot_be_begun_is_refused_before_spark_is_started(
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
    assert refused(["run", "--input", there, "--input", "s3a://bucket/x", "--output", "/s"], capsys) == (
        f"{run}--input {here}, --input s3a://bucket/x: these are on several file systems; load one after another"
    )
    assert refused(["run", "--input", there, "--output", "/s", "--conf", "memory=4g"], capsys) == (
        "koordinator-pipeline run: Invalid value for '--conf': 'memory=4g' is not NAME=VALUE of a setting of Spark's"
    )


def test_without_pyspark_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    assert refused(["run"], capsys).endswith("pyspark is not installed: pip install 'koordinator[spark]'")
