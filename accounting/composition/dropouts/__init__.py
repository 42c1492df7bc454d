"""The fast evaluators for a fraction of the users, whose central noise is not geometric."""
