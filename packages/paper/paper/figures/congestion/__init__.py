"""Figures of flows that share a link."""
