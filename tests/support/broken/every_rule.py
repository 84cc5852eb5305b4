"""The rules of all parts."""

from __future__ import annotations

from broken.acls import ACL_RULES
from broken.authentication import AUTHENTICATION_RULES
from broken.classic_groups import CLASSIC_GROUP_RULES
from broken.clocks import CLOCK_RULES
from broken.consumer_groups import CONSUMER_GROUP_RULES
from broken.faults import FAULT_RULES
from broken.fences import FENCE_RULES
from broken.offsets import OFFSET_RULES
from broken.quotas import QUOTA_RULES
from broken.rules import RULES
from broken.share_groups import SHARE_GROUP_RULES
from broken.streams_groups import STREAMS_GROUP_RULES
from broken.verdicts import VERDICT_RULES

EVERY_RULE = (
    *RULES,
    *CONSUMER_GROUP_RULES,
    *CLASSIC_GROUP_RULES,
    *FENCE_RULES,
    *OFFSET_RULES,
    *CLOCK_RULES,
    *FAULT_RULES,
    *VERDICT_RULES,
    *AUTHENTICATION_RULES,
    *ACL_RULES,
    *SHARE_GROUP_RULES,
    *STREAMS_GROUP_RULES,
    *QUOTA_RULES,
)
