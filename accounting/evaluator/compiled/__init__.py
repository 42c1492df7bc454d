"""Numba kernels of the steps around the transform, which is in ``evaluator/kernels.py``."""
