"""The baseline: RoCEv2 RC over one path, with go-back-N and DCQCN-like rate control."""
