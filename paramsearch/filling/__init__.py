"""Making tables: grids of problems, the workers that solve them, and the folder they fill."""
