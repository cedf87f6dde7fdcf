"""For operators: an incident to find (`incident`), a change to rehearse (`rehearsal`)."""

__all__ = ["incident"]
