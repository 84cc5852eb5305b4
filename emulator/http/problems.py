"""Errors as RFC 9457 has them: what was wrong, with which field, and what would be allowed."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError

MEDIA_TYPE = "application/problem+json"

SHOWN_MAX = 200
"""The most characters of a value that was sent, in what is said of it."""


class Problem(Exception):
    """A request that cannot be done, with nothing changed. `errors` are what is wrong, field by field."""

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
        """The problem document."""
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": str(self),
        }
        if self.errors:
            document["errors"] = self.errors
        return JSONResponse(document, self.status.value, self.headers, MEDIA_TYPE)


def unfit(error: ValidationError, allowed: list[str]) -> Problem:
    """Fields that are missing, unknown, or not what they should be."""
    errors = [
        {
            "field": ".".join(map(str, each["loc"])) or "(body)",
            "detail": each["msg"] + (f"; known: {', '.join(allowed)}" if each["type"] == "extra_forbidden" else ""),
            "value": repr(each["input"])[:SHOWN_MAX],
        }
        for each in error.errors(include_url=False, include_context=False)
    ]
    said = "; ".join(f"{each['field']}: {each['detail']}" for each in errors)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, said, errors)
