"""A P4Runtime server for many devices in one process, over the engines of `switch.engine`."""
