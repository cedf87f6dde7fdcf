"""Parts of the Linux kernel that several rooms use: packet filters, network namespaces, rights of a process."""

__all__ = ["bpf", "netns", "rights"]
