"""What ran, for the header of a trace: the run as CI names it, what is tested, and on what.

A column of which nothing is known is left out. What is found here never decides anything.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_ID = "KOORDINATOR_RUN_ID"
"""The variable whose value is the id of the run, whatever CI says."""

LIBRARIES = ("kafka-python", "confluent-kafka", "aiokafka")
"""The client libraries whose versions are told, if they are installed: they are not imported for that."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Who runs CI, known by the variable `sign`. The other fields are variables, the first that is set counts.

    The id of a run is all of `run_id` that is set: a second attempt, and a job beside it, are runs of their own.
    """

    name: str
    sign: str
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
    # last: agents of other systems may have its variables
    Provider("jenkins", "JENKINS_URL", ("GIT_URL",), ("GIT_COMMIT",), ("GIT_BRANCH",), ("BUILD_TAG",)),
)
"""The systems whose variables are known, in the order in which they are looked for."""


def about_run(environ: Mapping[str, str]) -> dict[str, object]:
    """The columns that are known here. `run_id` is missing if neither KOORDINATOR_RUN_ID nor CI gives one."""
    system = f"{platform.system()}-{platform.release()}-{platform.machine()}"
    columns = {**_of_ci(environ), "os": system, "libs": _libraries()}
    if environ.get(RUN_ID):
        columns["run_id"] = environ[RUN_ID]
    return {name: value for name, value in columns.items() if value}


def _of_ci(environ: Mapping[str, str]) -> dict[str, object]:
    provider = next((each for each in PROVIDERS if environ.get(each.sign)), None)
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
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
