"""A second, independent proof of delta, in ball arithmetic (notary.md)."""

from accounting.model.mechanism import ExactCentral, ExactNoise, Mechanism
from accounting.notary.notary import GAP, LOOSE, Finding, Notary

__all__ = ["GAP", "LOOSE", "ExactCentral", "ExactNoise", "Finding", "Mechanism", "Notary"]
