"""Tables of certified parameter files: filled by many workers, looked up in milliseconds."""
