"""Scenarios whose traffic a user brings: workload files, or a command in hosts."""

__all__ = ["command", "replay"]
