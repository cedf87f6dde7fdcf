"""One run in virtual time on several processes, which MPI joins. `rank` is an MPI rank here, one process of the run."""
