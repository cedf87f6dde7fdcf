"""The lowered program as BMv2 JSON and P4Info."""
