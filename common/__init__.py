"""The ground floor: tools that every part of the lab needs. Imports no other room."""

__all__ = [
    "cache", "client", "compiled", "csv_text", "door", "fields", "files", "garbage", "giving", "interpreter",
    "interrupts", "journal", "latency", "linux", "locks", "outcome", "pairs", "plain_file", "quoting", "records",
    "scratch", "seeds", "server", "states", "terminal", "unix_socket", "user_code", "uverbs",
]  # fmt: skip
