"""Claims of the article and of seven KIPs, each with a check that plays it: `make lab` prints the verdicts."""

from . import article, experiments, kip_848, kip_932, kip_1071, kips
from .claim import CLAIMS, CONDITIONS, FAILS, HOLDS, Claim, Finding

__all__ = [
    "CLAIMS",
    "CONDITIONS",
    "FAILS",
    "HOLDS",
    "Claim",
    "Finding",
    "article",
    "experiments",
    "kip_848",
    "kip_932",
    "kip_1071",
    "kips",
]
