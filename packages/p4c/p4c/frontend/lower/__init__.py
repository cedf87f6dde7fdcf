"""The checked program in BMv2's notions."""
