"""The first proof: numba kernels in floating point, with a proven error budget."""
