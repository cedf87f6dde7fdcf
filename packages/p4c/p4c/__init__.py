"""A P4_16 compiler for v1model, and the model of its programs, which the switch executes."""
