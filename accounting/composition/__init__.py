"""Several releases: what any sequence of changes of one user can add up to (releases.md)."""
