#include <core.p4>
#include "absent.p4"
#include <v2model.p4>
