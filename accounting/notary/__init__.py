"""A second, independent proof of delta, in ball arithmetic (notary.md)."""
