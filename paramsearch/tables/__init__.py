"""Tables of certified parameter files: many workers fill them, lookups take milliseconds."""
