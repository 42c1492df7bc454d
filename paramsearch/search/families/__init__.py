"""Atom families while they are searched for: drafts, families of hubs, and moves between them."""
