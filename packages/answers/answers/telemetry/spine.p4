// A spine has no hosts, so its table of the last hop is empty.
#include "leaf.p4"
