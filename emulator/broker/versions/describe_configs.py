"""DescribeConfigs: v0 has `is_default` instead of `config_source`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.data.config_admin import DEFAULT_CONFIG

if TYPE_CHECKING:
    from koordinator.wire.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult

    from .error_numbering import Numbering


def render_response(response: DescribeConfigsResponse, version: int, numbering: Numbering) -> DescribeConfigsResponse:
    """Set `is_default` in v0."""
    del numbering
    return response if version > 0 else replace(response, results=tuple(_result(r) for r in response.results))


def _result(result: DescribeConfigsResult) -> DescribeConfigsResult:
    configs = tuple(replace(row, is_default=row.config_source == DEFAULT_CONFIG) for row in result.configs)
    return replace(result, configs=configs)
