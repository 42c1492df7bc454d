"""Verdicts on claims: certify a file, or audit one that others propose."""
