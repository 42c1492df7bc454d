"""All pairs of a large protocol: mixtures by recurrence, blocks, and pairs that others cover."""
