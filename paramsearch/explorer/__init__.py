"""A table of parameter files as one interactive HTML page that needs no network."""
