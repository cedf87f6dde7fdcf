/* The arrays of a program's counters, meters and registers, in a device. */
#pragma once

#include "device/device.h"

/* Arrays for the device's program, all zero. False when there is no memory; cells_close takes back what was made. */
bool cells_open(struct device *d);
void cells_close(struct device *d);
