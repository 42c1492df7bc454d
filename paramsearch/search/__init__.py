"""Which family of atoms, and how much noise on each?

A reader follows the data: ``target`` (the problem) -> ``draft`` (a family in the making) ->
``model`` (its cost and its divergences) -> ``local`` (the cheapest noise for one family) ->
``moves`` and ``hubs`` (other families) -> ``engine`` (the search) -> ``finish`` (a certified file).
Everything but ``finish`` works with estimates; nothing it says is trusted.
"""
