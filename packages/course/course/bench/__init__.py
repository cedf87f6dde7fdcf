"""A switch on the bench: a student's P4 control in a whole program, packets in, packets out, in virtual time."""
