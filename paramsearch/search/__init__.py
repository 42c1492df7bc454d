"""The search for the cheapest noise: a family of atoms, and a law for each of them.

A reader follows the data: ``target`` (what is searched for) -> ``families`` (drafts, hubs, moves)
-> ``noise`` (the cheapest noise for one family) -> ``family_search`` (the search over families).
``dominance`` and ``paper_parameters`` are the paper's own way.  Everything here works with
estimates; ``paramsearch.generation`` proves the result.
"""
