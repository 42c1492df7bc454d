"""The report of an audit: one self-contained HTML page."""
