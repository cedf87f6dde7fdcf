"""Completion queues. Room for a completion is reserved when the request is posted, so a queue never overflows."""

from collections import deque

from endpoint.completion import Completion
from endpoint.transport import QueueFull


class CompletionQueue:
    """At most `capacity` completions, oldest first. Raises `ValueError` for a capacity below 1."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a completion queue's capacity is {capacity}; it must be at least 1")
        self.capacity = capacity
        self._entries: deque[Completion] = deque()
        self._reserved = 0

    def __len__(self) -> int:
        return len(self._entries)

    def reserve(self) -> None:
        """Keep room for one completion. Raises `QueueFull`."""
        if self._reserved >= self.capacity:
            raise QueueFull(f"all {self.capacity} entries of the completion queue are taken; poll it first")
        self._reserved += 1

    def release(self) -> None:
        """Give back room that no completion will take."""
        self._reserved -= 1

    def push(self, completion: Completion) -> None:
        """Only into reserved room."""
        self._entries.append(completion)

    def poll(self, limit: int = 16) -> list[Completion]:
        """Take up to `limit` completions, oldest first; their room is free again."""
        entries = self._entries
        if not entries:  # as nearly always
            return []
        taken = [entries.popleft() for _ in range(min(limit, len(entries)))]
        self._reserved -= len(taken)
        return taken
