"""The parameter file: its model, its schema, how it is assembled and signed."""
