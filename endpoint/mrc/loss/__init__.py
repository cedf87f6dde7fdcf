"""Loss detection: when a packet counts as lost."""
