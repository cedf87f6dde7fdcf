"""Pictures of a fabric: what is drawn, and the formats that it is drawn in."""
