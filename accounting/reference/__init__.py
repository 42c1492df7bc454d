"""The third proof: the definition itself, enumerated (reference.md)."""
