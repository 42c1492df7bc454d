"""Atoms that share a law: in large families, those that need about the same noise.

Hundreds of atoms with a few dozen laws have hardly more messages than with a law each, but far
fewer parameters, tables and transforms.
"""

from __future__ import annotations

import numpy as np

from accounting.base.arrays import IntArray
from paramsearch.search.noise.noise_model import NoiseByValue, NoiseModel

UNTIED_UNTIL = 400
"""Largest max_value up to which every atom has a law of its own."""
_CLASSES = 64
"""Number of classes of atoms whose value no other atom uses; the others keep a law of their own."""


def tied_laws(model: NoiseModel, used: set[int], noise: NoiseByValue) -> IntArray | None:
    """Choose the law of each atom of a model, given how much noise the atoms need and the ``used``
    values; None if each keeps a law of its own."""
    if model.family.max_value <= UNTIED_UNTIL:
        return None
    log_mean = np.array([noise[value][0] for value in model.defined_values])
    alone = np.array([value < 0 or value in used for value in model.defined_values])
    low, high = log_mean[~alone].min(), log_mean[~alone].max()
    width = max((high - low) / _CLASSES, 1e-9)
    kind = np.floor((log_mean - low) / width).astype(np.int64)
    kind[alone] = -1 - np.arange(np.count_nonzero(alone))
    return np.unique(kind, return_inverse=True)[1].astype(np.int64)
