"""The primitives that this switch executes, and what each argument must be.

`data` is any integer expression; `lvalue` is a field (a FieldRef, LastField or AccessField) that is written; a jump
target is a constant index into the action's primitives. `truth` is a bool, or data that is not 0.
"""

# One word an argument, in order.
SIGNATURES: dict[str, tuple[str, ...]] = {
    "assign": ("lvalue", "data"),
    "assign_VL": ("varbit", "varbit"),
    "assign_header": ("header", "header"),
    "assign_union": ("union", "union"),
    "assign_header_stack": ("stack", "stack"),
    "assign_union_stack": ("union_stack", "union_stack"),
    "push": ("any_stack", "data"),
    "pop": ("any_stack", "data"),
    "add_header": ("header",),
    "remove_header": ("header",),
    "_jump": ("target",),
    "_jump_if_zero": ("data", "target"),
    "exit": (),
    "no_op": (),
    "drop": (),
    "mark_to_drop": ("header",),
    "count": ("counter", "data"),
    "execute_meter": ("meter", "data", "lvalue"),
    "register_read": ("lvalue", "register", "data"),
    "register_write": ("register", "data", "data"),
    "modify_field_with_hash_based_offset": ("lvalue", "data", "calculation", "data"),
    "modify_field_rng_uniform": ("lvalue", "data", "data"),
    "clone_ingress_pkt_to_egress": ("data", "field_list"),
    "clone_egress_pkt_to_egress": ("data", "field_list"),
    "resubmit": ("field_list",),
    "recirculate": ("field_list",),
    "truncate": ("data",),
    "generate_digest": ("data", "learn_list"),
    "log_msg": ("text", "vector"),
    "assert": ("truth",),
    "assume": ("truth",),
    # P4_14 spellings that older compilers emit
    "modify_field": ("lvalue", "data"),
    "add_to_field": ("lvalue", "data"),
    "subtract_from_field": ("lvalue", "data"),
    "copy_header": ("header", "header"),
}
