"""Commands about tables of precomputed parameter files."""
