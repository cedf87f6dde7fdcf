"""The limits of a program. More is a mistake or malice, and would take the memory or the stack of the switch."""

__all__ = ["FRAME_BYTES_MAX", "JUMPS_BACK_MAX", "PARSER_STATES_MAX"]

FRAME_BYTES_MAX = 16384
BITS_MAX = 8 * FRAME_BYTES_MAX  # of a field, header, parameter, key, look-ahead or hash input: no frame has more
JUMPS_BACK_MAX = 1 << 16  # of an action each time it runs: later ones are not taken, so that no packet holds a switch
LEARN_LISTS_MAX = 64  # a device has a word with a bit for each
PARSER_STATES_MAX = 4096  # entered in one parse: beyond is error.ParserTimeout, so that no packet holds a parser
