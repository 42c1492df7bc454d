"""Mechanisms to compare the protocol with, each with its error and cost."""

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
