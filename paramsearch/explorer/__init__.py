"""A table of parameter files as one page for people, which needs no network."""
