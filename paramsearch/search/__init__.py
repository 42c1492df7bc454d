"""Which family of atoms, and how much noise on each?

A reader follows the data: ``target`` (what is searched for) -> ``families`` (drafts, hubs, moves)
-> ``noise`` (the cheapest noise for one family) -> ``family_search`` (the search over families).
``dominance`` and ``paper_parameters`` are the paper's own way.  Everything here works with
estimates; ``paramsearch.generation`` proves the result.
"""
