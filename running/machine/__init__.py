"""The machine during runs: how late and how busy it is, and processes that end with their owner."""
