"""The figures: one file each, all of them data (`paper.figure`)."""
