"""The commands of `mrclab`: each module registers its own with `register(subparsers)`."""
