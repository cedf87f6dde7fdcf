"""Static tables from a plan, installed once over P4Runtime and verified."""
