"""The emulated world: namespaces, links, switches and hosts of a plan on this machine. Needs root and Linux."""
