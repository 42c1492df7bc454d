"""Stage 1: the dominance program, a convex program that says how good a family of atoms is."""
