"""Parts of the Linux kernel that several rooms use: packet filters, network namespaces."""

__all__ = ["bpf", "netns"]
