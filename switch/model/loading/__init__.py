"""From BMv2 JSON to `switch.model.Program`, one module for each part of the file."""
