"""Embedded P4 switch: two executions of one program model, P4Runtime."""
