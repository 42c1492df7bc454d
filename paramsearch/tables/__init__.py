"""Tables of certified parameter files: the index, and lookups that take milliseconds."""
