"""One farm of jobs for sweeps, contests, hunts, figures and rehearsals: this process, others, or a Dask cluster."""
