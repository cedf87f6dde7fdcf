"""Reference of lab 1: the answers of one seed."""

ANSWERS = {
    # @ANSWERS@
}
