"""The box: a student's code in a process that can compute and answer, and nothing else."""
