"""Error responses as RFC 9457 defines them: the problem, its field, and the allowed values."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError

MEDIA_TYPE = "application/problem+json"

SHOWN_MAX = 200
"""The most characters of an invalid value in an error response."""


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


def validation_problem(error: ValidationError, known: list[str]) -> Problem:
    """Return the problem of missing, unknown or invalid fields."""
    errors = [
        {
            "field": ".".join(map(str, each["loc"])) or "(body)",
            "detail": each["msg"] + (f"; known: {', '.join(known)}" if each["type"] == "extra_forbidden" else ""),
            "value": repr(each["input"])[:SHOWN_MAX],
        }
        for each in error.errors(include_url=False, include_context=False)
    ]
    detail = "; ".join(f"{each['field']}: {each['detail']}" for each in errors)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors)
