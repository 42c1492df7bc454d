"""Commands that prove a guarantee, and those around the proof: certify, rescale, sign, schema."""
