"""From a problem to a certified parameter file: search, rounding and proof."""
