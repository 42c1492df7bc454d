"""From certified parameter files to what one user loses in many releases."""

from __future__ import annotations

from accounting.base.errors import InvalidConfiguration
from accounting.base.validation import instance
from accounting.loss_distribution import LossDistribution
from paramsearch.certification.certify import claimed_mechanism
from paramsearch.parameters.assembly import consistent
from paramsearch.parameters.parameter_file import ParameterFile


def loss_distribution(file: ParameterFile, times: int = 1) -> LossDistribution:
    """The privacy loss in single releases of a certified file, to compose with others.

    It is computed from the noise of the fraction of the users that the file's claim is about, not
    from the claim: any change in each release is covered, whatever number of releases the file was
    made for.

    Args:
        file: A certified parameter file.
        times: Number of releases; one is one run of the protocol.

    Returns:
        The loss distribution of so many releases.

    Raises:
        InvalidConfiguration: If the file is not certified, or contradicts itself.
        InvalidParameter: If ``times`` is outside its domain.

    >>> from paramsearch import load, loss_distribution
    >>> from paramsearch.tables.lookup import shipped_folder
    >>> file = load(shipped_folder() / "files" / "5-1-1e-06-0.9.json")
    >>> loss_distribution(file, 30)
    <LossDistribution 30 releases, any change in each
     max_value 5; dimension 1; substitution>
    """
    instance("file", file, ParameterFile, "load(path) reads one")
    if file.certificate is None:
        raise InvalidConfiguration(
            "the file is not certified, and nothing is known of its noise: paramsearch certify"
        )
    consistent(file)
    return LossDistribution((claimed_mechanism(file),), (times,), file.problem.adjacency)
