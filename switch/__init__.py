"""Embedded P4 switch: a compiler front end, two executions of one program model, P4Runtime."""
