"""The audit report: one self-contained HTML page."""
