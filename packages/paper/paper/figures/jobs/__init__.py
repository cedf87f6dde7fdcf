"""Figures of a training job while something breaks."""
