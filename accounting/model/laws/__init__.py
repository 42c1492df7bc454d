"""The laws of noise: one module for each, and their sums."""
