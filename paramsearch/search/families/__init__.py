"""Atom families under construction: drafts, families of hubs, and moves between them."""
