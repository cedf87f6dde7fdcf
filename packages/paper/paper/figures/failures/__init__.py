"""Figures of single flows whose paths, links or switches fail."""
