"""Which proof covers which change: the tiers."""
