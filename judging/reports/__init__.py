"""A judged run for readers: text, page, plots, CSV, and two runs compared."""
