"""Congestion control: the algorithms, and the profiles that configure them."""
