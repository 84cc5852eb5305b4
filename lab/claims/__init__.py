"""Claims of the article and of four KIPs, each with a check that plays it: `make lab` prints the verdicts."""

from . import article, kips
from .claim import CLAIMS, CONDITIONS, FAILS, HOLDS, Claim, Finding

__all__ = ["CLAIMS", "CONDITIONS", "FAILS", "HOLDS", "Claim", "Finding", "article", "kips"]
