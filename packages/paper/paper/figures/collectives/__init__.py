"""Figures of collectives, most of them with random loss."""
