"""A change as steps with times, rehearsed on many seeds: how likely the job is to notice it."""
