"""The mechanisms that the protocol is compared with, each with its error and cost."""

from accounting.baselines.central import DiscreteLaplace, Laplace, NonPrivate
from accounting.baselines.ikos import SplitAndMix
from accounting.baselines.interface import Baseline, Run
from accounting.baselines.rappor import FragmentedRappor
from accounting.baselines.response import RandomizedResponse

__all__ = [
    "Baseline",
    "DiscreteLaplace",
    "FragmentedRappor",
    "Laplace",
    "NonPrivate",
    "RandomizedResponse",
    "Run",
    "SplitAndMix",
]
