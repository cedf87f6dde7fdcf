"""MRC endpoints: a transport without I/O, a NIC driver around it, an agent in every host."""

# First of all: every other module of this package may have a compiled form.
from endpoint.compiled import FORM as FORM
