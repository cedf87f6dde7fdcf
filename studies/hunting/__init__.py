"""Hunting: random timelines, the invariants that must hold under all of them, and the smallest one that breaks one."""
