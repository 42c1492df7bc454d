"""Which configuration of the correlated-noise protocol should I deploy?"""
