"""From BMv2 JSON to `p4c.model.Program`, one module for each part of the file."""
