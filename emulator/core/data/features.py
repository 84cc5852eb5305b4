"""The features of a cluster: supported and finalized levels, and UpdateFeatures (KIP-584, KIP-778).

Kafka: `FeatureControlManager.updateFeatures`, `QuorumFeatures.reasonNotSupported`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordinator.wire.errors import Error
from koordinator.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

from ..dialect import dialect_of
from ..java.hash_order import java_order
from ..refusal import Refusal, RefusedError
from .metadata_changes import FeatureLevelChanged

if TYPE_CHECKING:
    from ...config.settings import Settings
    from ..cluster import ClusterState

METADATA_VERSION, TRANSACTION_VERSION, GROUP_VERSION = "metadata.version", "transaction.version", "group.version"
SHARE_VERSION, STREAMS_VERSION = "share.version", "streams.version"

VERSION_OF = {"consumer": GROUP_VERSION, "share": SHARE_VERSION, "streams": STREAMS_VERSION}
"""The feature of each protocol of groups."""

DEAD_LETTERS_SINCE = 2
"""The level of `share.version` from which there are dead letters."""

BOOTSTRAP_LEVEL, BOOTSTRAP_RELEASE = 4, "3.3-IV0"
"""The lowest `metadata.version` that a cluster may have (`MetadataVersion.MINIMUM_BOOTSTRAP_VERSION`)."""

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""The types of an update (`FeatureUpdate.UpgradeType`)."""


_WITHOUT_FEATURES = {
    False: Refusal(
        Error.INVALID_REQUEST, "Could not apply finalized feature update because the provided feature is not supported."
    ),
    True: Refusal(Error.INVALID_REQUEST, "Can not delete non-existing finalized feature."),
}
"""The refusals with ZooKeeper (`KafkaController.validateFeatureUpdate`), by whether the feature is to be deleted."""


class Features:
    """The features that have an effect here: their supported levels, and those that are finalized.

    A release with ZooKeeper has none. `epoch` counts the changes; in Kafka it is an offset of the metadata log.
    """

    def __init__(self, settings: Settings) -> None:
        self.dialect = dialect_of(settings)
        known = {
            METADATA_VERSION: self.dialect.metadata_versions,
            TRANSACTION_VERSION: self.dialect.transaction_versions,
            GROUP_VERSION: self.dialect.group_versions,
            SHARE_VERSION: self.dialect.share_versions,
            STREAMS_VERSION: self.dialect.streams_versions,
        }
        self.supported = {name: levels for name, levels in known.items() if levels.max >= 0}
        self.levels = {name: levels.max for name, levels in self.supported.items()}
        if TRANSACTION_VERSION in self.levels:
            self.levels[TRANSACTION_VERSION] = min(settings.transaction_version, self.levels[TRANSACTION_VERSION])
        self.epoch = 1 if self.supported else -1
        self._protocols = settings.group_coordinator_rebalance_protocols
        self._note_protocols()

    def level(self, name: str) -> int:
        """Return the finalized level of a feature, 0 if it has none."""
        return self.levels.get(name, 0)

    def _note_protocols(self) -> None:
        """Note what the levels and the brokers' list of protocols switch on: every heartbeat asks."""
        named = self._protocols.split(",") if self._protocols else None
        is_preview = named is None and self.dialect.consumer_groups_are_a_preview
        is_off = is_preview or (GROUP_VERSION in self.supported and not self.level(GROUP_VERSION))
        self.serves_consumer_groups = not is_off and (named is None or "consumer" in named)
        """Whether the consumer protocol is on (KIP-848)."""
        self.serves_share_groups = self.level(SHARE_VERSION) > 0
        """Whether the share protocol is on (KIP-932)."""
        self.writes_dead_letters = self.level(SHARE_VERSION) >= DEAD_LETTERS_SINCE
        """Whether share groups may have a topic for the records that they give up (KIP-1191)."""
        self.serves_streams_groups = self.level(STREAMS_VERSION) > 0 and (named is None or "streams" in named)
        """Whether the streams protocol is on (KIP-1071)."""

    def set_level(self, name: str, level: int) -> None:
        """Finalize a level."""
        self.levels[name] = level
        self.epoch += 1
        self._note_protocols()

    def not_served(self, protocol: str) -> RefusedError:
        """Return the refusal of a heartbeat of a protocol that is off: "consumer", "share" or "streams".

        Kafka's response has no message, so its reason is for the trace and the log.
        """
        config, version = "group.coordinator.rebalance.protocols", VERSION_OF[protocol]
        if version in self.supported and not self.level(version):
            reason = f"the feature {version} has level 0; UpdateFeatures finalizes another one"
        elif self._protocols:
            reason = f"{config}={self._protocols} does not name {protocol}; set classic,{protocol}"
        else:
            reason = f"the {protocol} protocol is off in this release; set {config}=classic,{protocol}"
        return RefusedError(Refusal(Error.UNSUPPORTED_VERSION, ""), reason)


def update_features(cluster: ClusterState, version: int, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Change finalized levels, or only check whether they may change. Since 4.0 all of them change, or none."""
    updates = {update.feature: update for update in request.feature_updates}
    refusals = {name: _refuse(cluster, version, updates[name]) for name in java_order(updates)}
    refused = next(filter(None, refusals.values()), None)
    is_atomic = cluster.features.dialect.updates_features_at_once
    if refused is not None and is_atomic:
        problem = f"The update failed for all features since the following feature had an error: {refused.message}"
        return UpdateFeaturesResponse(error_code=refused.error, error_message=problem)
    if not request.validate_only:
        accepted = (update for name, update in updates.items() if refusals[name] is None)
        changes = [FeatureLevelChanged(update.feature, update.max_version_level) for update in accepted]
        try:
            cluster.storage.propose(*changes)
        except RefusedError as error:
            return UpdateFeaturesResponse(error_code=error.error, error_message=error.refusal.message)
    rows = tuple(
        UpdatableFeatureResult(feature=name, error_code=error, error_message=message)
        for name in (updates if is_atomic else sorted(updates))
        for error, message in [_row(refusals[name], "NONE" if is_atomic else None)]
    )
    has_text = cluster.features.supported and not is_atomic
    return UpdateFeaturesResponse(results=rows, error_message="" if has_text else None)


def _row(refusal: Refusal | None, accepted: str | None) -> tuple[Error, str | None]:
    return (Error.NONE, accepted) if refusal is None else (refusal.error, refusal.message)


def not_controller() -> UpdateFeaturesResponse:
    """Return the response of a broker with ZooKeeper that is not the controller."""
    return UpdateFeaturesResponse(
        error_code=Error.NOT_CONTROLLER, error_message="This is not the correct controller for this cluster."
    )


def _refuse(cluster: ClusterState, version: int, update: FeatureUpdateKey) -> Refusal | None:
    name, level, kind = update.feature, update.max_version_level, update.upgrade_type
    if not cluster.features.supported:
        return _WITHOUT_FEATURES[level < 1]
    if version == 0:
        kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    problem = _problem(cluster, name, level, kind)
    if problem is not None:
        return Refusal(Error.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {problem}")
    return _refuse_metadata_version(cluster.features, level, kind) if name == METADATA_VERSION else None


def _problem(cluster: ClusterState, name: str, level: int, kind: int) -> str | None:
    features, controller = cluster.features, f"Local controller {cluster.brokers.controller_id}"
    supported, finalized = features.supported.get(name), features.level(name)
    if kind not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if supported is None and level:
        return f"{controller} does not support this feature."
    if supported is not None and level not in supported:
        return f"{controller} only supports versions {supported}"
    if level < finalized and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > finalized and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    if supported is None and features.dialect.updates_features_at_once:
        return f"Feature {name} not found."
    return None


def _refuse_metadata_version(features: Features, level: int, kind: int) -> Refusal | None:
    """Refuse a downgrade that loses metadata."""
    finalized = features.level(METADATA_VERSION)
    if level >= min(finalized, features.dialect.lossless_metadata_version):
        return None
    problem = "Refusing to perform the requested downgrade because it might delete metadata information."
    if level < BOOTSTRAP_LEVEL:
        problem = f"Unable to set a metadata.version less than {BOOTSTRAP_RELEASE}"
    elif kind == UNSAFE_DOWNGRADE:
        problem = "Unsafe metadata downgrade is not supported in this version."
    head = f"Invalid metadata.version {level}."
    if features.dialect.updates_features_at_once:
        head = f"Unsupported metadata.version downgrade from {finalized} to {level}."
    return Refusal(Error.INVALID_UPDATE_VERSION, f"{head} {problem}")
