"""The central term when the noises on +1 and -1 are NB(share, q) with share != 1, as they are if
only a fraction of the users adds noise (notary.md, section 5)."""
