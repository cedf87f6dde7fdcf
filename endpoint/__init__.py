"""MRC endpoints: a transport without I/O, a NIC driver around it, an agent in every host."""

# First of all: whatever else of this package is imported may have a compiled form.
from endpoint.compiled import FORM as FORM
