"""Several releases: the most that any sequence of changes of one user can add up to
(releases.md)."""
