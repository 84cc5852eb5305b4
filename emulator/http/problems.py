"""Error responses as RFC 9457 defines them: the problem, its field, and the allowed values."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from ..config.suggest import UnknownWord
from ..config.value_rules import InvalidSetting
from ..control.faults.actions import NoSuchRule, RuleConflict, RuleError
from ..control.time.durations import InvalidDuration
from ..formats.json_lines import LineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError

MEDIA_TYPE = "application/problem+json"

STATUSES: dict[type[ValueError], HTTPStatus] = {
    NoSuchRule: HTTPStatus.NOT_FOUND,
    RuleConflict: HTTPStatus.CONFLICT,
    **dict.fromkeys(
        (RuleError, UnknownWord, InvalidDuration, InvalidSetting, LineError), HTTPStatus.UNPROCESSABLE_ENTITY
    ),
    ValueError: HTTPStatus.CONFLICT,
}
"""The status of each error of an operation, subclasses first; other ValueErrors are those of the cluster's state."""

ERRORS_MAX = 100
"""The most errors that a response lists: a request may have millions."""

SHOWN_MAX = 200
"""The most characters of an invalid value in an error response."""


DURATION = "by"
"""The argument that is a duration."""

JSON_WORDS = {"dictionary": "an object", "Mapping": "an object", "Sequence": "a list", "valid list": "a list"}
"""JSON's words for the types in pydantic's messages."""


class Problem(Exception):
    """A refused request, which has changed nothing. `errors` describe invalid fields."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        errors: list[dict[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = errors
        self.headers = headers

    def response(self) -> JSONResponse:
        """Return the problem document."""
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": str(self),
        }
        if self.errors:
            document["errors"] = self.errors
        return JSONResponse(document, self.status.value, self.headers, MEDIA_TYPE)


def problem_of(error: ValueError, arguments: Mapping[str, object]) -> Problem:
    """Return the problem of an operation that was refused. `errors` name the argument of a duration, or of a rule."""
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    field, detail = "", str(error)
    if isinstance(error, InvalidDuration):
        field, detail = DURATION, f"{DURATION}: {error}"
    elif isinstance(error, NoSuchRule):
        field = error.kind
    errors = [{"field": field, "detail": detail, "value": repr(arguments[field])}] if field else None
    return Problem(status, detail, errors)


def validation_problem(error: ValidationError, known: list[str], unlisted: int = 0) -> Problem:
    """Return the problem of missing, unknown or invalid fields, and of `unlisted` more unknown ones."""
    errors = []
    found = error.errors(include_url=False, include_context=False)
    for each in found[:ERRORS_MAX]:
        field, value = ".".join(map(str, each["loc"])) or "(body)", repr(each["input"])[:SHOWN_MAX]
        match each["type"]:
            case "missing":
                detail = f"{field}: missing"
            case "extra_forbidden":
                detail = f"{field}: unknown field; {'known: ' + ', '.join(known) if known else 'there are no fields'}"
            case _:
                detail = f"{field} {value}: {_rule_of(each['msg'])}"
        errors.append({"field": field, "detail": detail, "value": value})
    unlisted += max(len(found) - ERRORS_MAX, 0)
    more = f"; and {unlisted} more" if unlisted else ""
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(each["detail"] for each in errors) + more, errors)


def _rule_of(message: str) -> str:
    """Return the rule that pydantic's message states, in JSON's words: "must be an object"."""
    rule = message.replace("Input should be", "must be").partition(", unable to parse")[0]
    for python, plain in JSON_WORDS.items():
        if python in rule:
            return f"must be {plain}"
    return rule
