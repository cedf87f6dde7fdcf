"""From `p4c.model.Program` to BMv2 JSON, one module for each part of the file."""
