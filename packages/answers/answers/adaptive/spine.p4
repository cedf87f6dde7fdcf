// The spine of p4/: on two tiers each packet has one way down.
#include "../../../../p4/spine.p4"
