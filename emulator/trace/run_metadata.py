"""Metadata of a test run for the header of a trace: the CI run, the tested commit, the platform and libraries.

Unknown columns are omitted. Nothing in the emulator depends on this metadata.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from koordinator.wire.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN_ID = "KOORDINATOR_RUN_ID"
"""The environment variable that overrides the run id of the CI system."""

LIBRARIES = ("kafka-python", "confluent-kafka", "aiokafka")
"""The client libraries whose installed versions are listed, without importing them."""


@value
class Provider:
    """A CI system, detected by the variable `marker`. The other fields list variables; the first one set applies.

    The run id joins every set variable of `run_id`, so that a second attempt and a parallel job are separate runs.
    """

    name: str
    marker: str
    repo: tuple[str, ...]
    commit: tuple[str, ...]
    branch: tuple[str, ...]
    run_id: tuple[str, ...]


PROVIDERS = (
    Provider(
        "github",
        "GITHUB_ACTIONS",
        ("GITHUB_REPOSITORY",),
        ("GITHUB_SHA",),
        ("GITHUB_HEAD_REF", "GITHUB_REF_NAME"),
        ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB"),
    ),
    Provider(
        "gitlab",
        "GITLAB_CI",
        ("CI_PROJECT_PATH",),
        ("CI_COMMIT_SHA",),
        ("CI_COMMIT_REF_NAME",),
        ("CI_PIPELINE_ID", "CI_JOB_ID"),
    ),
    Provider(
        "azure",
        "TF_BUILD",
        ("BUILD_REPOSITORY_NAME",),
        ("BUILD_SOURCEVERSION",),
        ("BUILD_SOURCEBRANCHNAME",),
        ("BUILD_BUILDID", "SYSTEM_JOBATTEMPT", "SYSTEM_JOBID"),
    ),
    Provider(
        "buildkite",
        "BUILDKITE",
        ("BUILDKITE_REPO",),
        ("BUILDKITE_COMMIT",),
        ("BUILDKITE_BRANCH",),
        ("BUILDKITE_BUILD_ID", "BUILDKITE_JOB_ID"),
    ),
    Provider(
        "circleci",
        "CIRCLECI",
        ("CIRCLE_PROJECT_REPONAME",),
        ("CIRCLE_SHA1",),
        ("CIRCLE_BRANCH",),
        ("CIRCLE_WORKFLOW_ID", "CIRCLE_BUILD_NUM"),
    ),
    Provider(
        "bitbucket",
        "BITBUCKET_BUILD_NUMBER",
        ("BITBUCKET_REPO_FULL_NAME",),
        ("BITBUCKET_COMMIT",),
        ("BITBUCKET_BRANCH",),
        ("BITBUCKET_BUILD_NUMBER", "BITBUCKET_STEP_UUID"),
    ),
    Provider("travis", "TRAVIS", ("TRAVIS_REPO_SLUG",), ("TRAVIS_COMMIT",), ("TRAVIS_BRANCH",), ("TRAVIS_JOB_ID",)),
    # last: agents of other systems may set its variables
    Provider("jenkins", "JENKINS_URL", ("GIT_URL",), ("GIT_COMMIT",), ("GIT_BRANCH",), ("BUILD_TAG",)),
)
"""The known CI systems, in the order of detection."""


class RunColumns(Mapping[str, object]):
    """The known columns, found at the first look. `run_id` is missing without KOORDINATOR_RUN_ID and outside CI."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> object:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @cached_property
    def _columns(self) -> dict[str, object]:
        system = f"{platform.system()}-{platform.release()}-{platform.machine()}"
        columns = {**_ci_columns(self._environ), "os": system, "libs": _libraries()}
        if self._environ.get(RUN_ID):
            columns["run_id"] = self._environ[RUN_ID]
        return {name: value for name, value in columns.items() if value}


def _ci_columns(environ: Mapping[str, str]) -> dict[str, object]:
    provider = next((each for each in PROVIDERS if environ.get(each.marker)), None)
    if provider is None:
        return {}

    def first(names: tuple[str, ...]) -> str | None:
        return next((environ[name] for name in names if environ.get(name)), None)

    return {
        "ci_provider": provider.name,
        "repo": first(provider.repo),
        "commit": first(provider.commit),
        "branch": first(provider.branch),
        "run_id": "-".join(environ[name] for name in provider.run_id if environ.get(name)),
    }


def _libraries() -> dict[str, str]:
    return {name: version for name in LIBRARIES if (version := installed_version(name)) is not None}


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, without importing it; None if it is missing."""
    from importlib import metadata  # noqa: PLC0415 - only the header of a trace needs it

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
