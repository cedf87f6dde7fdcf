"""The lab in a browser: one page for a running lab, a run that is going on, a recorded run, or a plan."""
