"""Commands that search for the cheapest noise, and the comparison with other mechanisms."""
