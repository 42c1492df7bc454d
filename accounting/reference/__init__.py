"""The third proof: the definition itself, enumerated (README.md)."""
