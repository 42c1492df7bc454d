"""A search for the pairs that matter in a large problem, among millions.

The variance of the loss, which the dominance program bounds, says which pairs may be near delta;
only these are estimated, block by block.  It says little where a noise with few copies is shifted
by more than one, as that of v is where an input that v is a part of becomes v: those are estimated
anyway.
"""

from __future__ import annotations

import numpy as np

from accounting.base.arrays import FloatArray, IntArray
from paramsearch.search.dominance.calibration import Calibration
from paramsearch.search.dominance.program import InputColumns
from paramsearch.search.dominance.screening import worst_by_column
from paramsearch.search.noise.noise_model import NoiseModel

_LEVEL = 0.5
"""Left side of the dominance program from which a pair is estimated; active pairs have 0.6 to 1.2.
Rule of thumb."""
_SAMPLE = 400_000
"""Pairs j > k of a sample."""
_BLOCK = 100_000
"""Pairs that are estimated at a time."""


def near_pairs(
    model: NoiseModel, x: FloatArray, level: float, most: int, *, sampled: bool = False
) -> IntArray:
    """List the pairs (j, k) whose log delta exceeds ``level`` plus the worst pair's.

    At most so many, the worst ones, in ascending order.  ``sampled`` estimates only some of very
    many pairs: those of an input and a part of it, and others that are evenly spaced.
    """
    order = [model.unit, *(i for i in range(len(model.laws)) if i != model.unit)]
    mean, r = np.exp(model.per_atom(x)[:, order])
    columns = InputColumns.of(model.family)
    program = Calibration.typical(model.target).program(
        model.target, columns, model.atom_size[order]
    )
    t_prime = mean / np.sqrt(r)
    largest = worst_by_column(program, t_prime**-2.0).largest
    found = program.pairs_above(t_prime, _LEVEL * largest)
    if sampled and len(found) > _SAMPLE:
        found = found[np.linspace(0, len(found) - 1, _SAMPLE).astype(np.int64)]
    found = np.unique(np.concatenate([found, _pairs_with_parts(model)]), axis=0)
    pairs = np.concatenate([found, found[:, ::-1]])
    # pairs with the same b share the work for their central factors
    kappa = pairs[:, 0] - pairs[:, 1]
    b = columns.unit[pairs[:, 0]] - columns.unit[pairs[:, 1]] + np.minimum(kappa, 0)
    pairs = pairs[np.lexsort((np.abs(kappa), b))]
    excess = np.empty(len(pairs))
    for begin in range(0, len(pairs), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        excess[block] = model.watching(np.ascontiguousarray(pairs[block])).excess(x)
    near = np.flatnonzero(excess > excess.max() + level)
    if len(near) > most:
        near = near[np.argpartition(-excess[near], most)[:most]]
    return np.unique(pairs[near], axis=0)


def _pairs_with_parts(model: NoiseModel) -> IntArray:
    """List the pairs j > k of inputs where the noise of k is shifted by j as well."""
    values = np.array(model.defined_values)
    columns = model.family.sparse_columns
    j = np.repeat(np.arange(len(columns)), [len(column) for column in columns])
    k = values[np.array([atom for column in columns for atom in column], int)]
    found: IntArray = np.stack([j, k], axis=1)[(k > 0) & (k < j)]
    return found
