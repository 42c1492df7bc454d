"""The protocol itself, run from a certified parameter file: randomizers and the analyzer."""

from paramsearch.deploy.analyzer import Analyzer, Estimate, NotMessages
from paramsearch.deploy.bits import BitSource, SeededBits, SystemBits, Tape
from paramsearch.deploy.codec import Codec
from paramsearch.deploy.participation import TooFew
from paramsearch.deploy.randomizer import Batch, RandomizedReals, Randomizer

__all__ = [
    "Analyzer",
    "Batch",
    "BitSource",
    "Codec",
    "Estimate",
    "NotMessages",
    "RandomizedReals",
    "Randomizer",
    "SeededBits",
    "SystemBits",
    "Tape",
    "TooFew",
]
