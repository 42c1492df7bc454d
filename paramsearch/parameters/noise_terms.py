"""The independent noises of a parameter file, atom by atom."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from accounting.model.family import Atom
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.sections import BurstNoise


@dataclass(frozen=True)
class NoiseTerm:
    """The noise of all n users on one atom, in each coordinate, as compound Poisson events."""

    atom: Atom
    rate: Fraction
    """Expected number of events."""
    p: Fraction
    m: int
    """0 if an event has a logarithmic(p) number of copies; otherwise it has 1 + NB(m, p)."""
    amount: float
    """The parameter r of the negative binomial that the copies sum to; for bursts, the rate."""

    @property
    def one_minus_p(self) -> float:
        return float(1 - self.p)

    @property
    def variance(self) -> float:
        """The variance of the number of copies."""
        odd = self.one_minus_p
        of_geometric = (1 - odd) / odd**2
        if not self.m:
            return self.amount * of_geometric
        return self.amount * ((1 + self.m * (1 - odd) / odd) ** 2 + self.m * of_geometric)


def noise_terms(file: ParameterFile) -> list[NoiseTerm]:
    """The central noise, which is on +1 and on -1, then the atoms in the order of the file."""
    central = file.central
    found = [
        NoiseTerm((sign,), Fraction(central.rate), Fraction(central.p), 0, central.r)
        for sign in (1, -1)
    ]
    for entry in file.atoms:
        rate, p = Fraction(entry.rate), Fraction(entry.p)
        m, amount = (entry.m, float(rate)) if isinstance(entry, BurstNoise) else (0, entry.r)
        found.append(NoiseTerm(entry.atom, rate, p, m, amount))
    return found
