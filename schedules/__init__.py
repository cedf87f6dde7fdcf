"""Workloads that others wrote: connection matrices of htsim and GOAL programs, read into one form and written again."""
