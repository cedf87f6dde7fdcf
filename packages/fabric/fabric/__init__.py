"""Fabrics that exist, as plans: imported from files of other tools, checked, exported again."""
