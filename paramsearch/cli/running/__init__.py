"""Commands that run the protocol."""
