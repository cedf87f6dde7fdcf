"""A plan carried to other gear: its graph and tables as JSON, its uSIDs and static routes for FRR and SONiC."""
