"""Fast estimates of delta and their gradients, for a search; never for a certificate."""
