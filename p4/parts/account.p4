// The program's own account of every queue: BMv2 shows a queue's depth in egress only and drops silently when it is full.
//
// One cell per egress port and priority, so that one write settles it:  [63:16] last settled, in us  [15:0] packets waiting.
// Raised in ingress (admission.p4), settled in egress (settle.p4), each within one action, which is what BMv2 locks.

register<bit<64>>(PORT_QUEUES) queue_account;
