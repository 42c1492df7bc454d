"""Verdicts on claims: certify a file, or audit one that somebody else proposes."""
