"""The noise of one family: its cost, its constraints, and the cheapest that meets them."""
