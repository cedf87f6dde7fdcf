"""The figures: one file each, all of them data (`scenarios.reproducing.figure`)."""
