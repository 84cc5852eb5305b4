"""UpdateFeatures (api key 57), versions 0-2, flexible in all (KIP-584).

v1 upgrade_type in place of allow_downgrade, validate_only (KIP-778) | v2 no results: all updates or none (KIP-1022)
"""

from ..schema import array, boolean, entity, int8, int16, int32, message, string


@entity
class FeatureUpdateKey:
    """The new level of a feature; 0 removes it."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """New finalized levels of features."""

    timeout_ms: int = int32(default=60_000)
    feature_updates: tuple[FeatureUpdateKey, ...] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


@entity
class UpdatableFeatureResult:
    """The result of one feature."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """The result of the whole request, and before v2 a row for each feature."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[UpdatableFeatureResult, ...] = array(UpdatableFeatureResult, "0-1", ignorable=True)
