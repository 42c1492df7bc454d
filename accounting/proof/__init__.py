"""The strategy of a proof: which prover covers which change."""
