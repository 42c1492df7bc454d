"""The independent noises of a parameter file, atom by atom."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from accounting.model.family import Atom
from paramsearch.parameters.parameter_file import ParameterFile
from paramsearch.parameters.sections import AtomNoise, CentralNoise


@dataclass(frozen=True)
class NoiseTerm:
    """Noise NB(r, p) of all n users on one atom, in each coordinate."""

    atom: Atom
    rate: Fraction
    """Expected number of compound Poisson events; each has a logarithmic(p) number of copies."""
    p: Fraction
    r: float

    @property
    def one_minus_p(self) -> float:
        return float(1 - self.p)


def noise_terms(file: ParameterFile) -> list[NoiseTerm]:
    """The central noise, which is on +1 and on -1, then the atoms in the order of the file."""

    def term(atom: Atom, noise: CentralNoise | AtomNoise) -> NoiseTerm:
        return NoiseTerm(atom, Fraction(noise.rate), Fraction(noise.p), noise.r)

    central = [term((1,), file.central), term((-1,), file.central)]
    return central + [term(entry.atom, entry) for entry in file.atoms]
