"""DescribeConfigs (32), versions 0-4.

v0 is_default | v1 config_source, synonyms (KIP-226) | v3 config_type, documentation (KIP-569).
Not emulated: documentation (null); resources other than topics and brokers (42).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.data.config_admin import DEFAULT_CONFIG

if TYPE_CHECKING:
    from koordinator.wire.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult

    from .numbering import Numbering


def answer(response: DescribeConfigsResponse, version: int, numbering: Numbering) -> DescribeConfigsResponse:
    """v0 knows of a value only whether it is the default."""
    del numbering
    return response if version > 0 else replace(response, results=tuple(_result(r) for r in response.results))


def _result(result: DescribeConfigsResult) -> DescribeConfigsResult:
    configs = tuple(replace(row, is_default=row.config_source == DEFAULT_CONFIG) for row in result.configs)
    return replace(result, configs=configs)
