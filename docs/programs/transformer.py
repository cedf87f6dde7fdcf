"""A tiny transformer that learns to continue sequences, its weights sharded over the ranks or the same on each.

    ./lab launch --ranks h0..h3 -- python3 transformer.py
    ./lab launch --ranks h0..h3 -- python3 transformer.py --parallel ddp

Shards are FSDP2's, `fully_shard`, which newer releases of PyTorch have on CPUs; replicas are DistributedDataParallel's.
"""

import argparse
import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOKENS = 16
LENGTH = 24


class Block(nn.Module):
    """Attention over earlier tokens, then two linear layers, each added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.queries(self.first(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        attended = scores.masked_fill(later, -math.inf).softmax(-1) @ value
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.inner(self.second(x))


class Transformer(nn.Module):
    """Predicts each next token."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def sequences(count: int, generator: torch.Generator) -> torch.Tensor:
    """Each token is the sum of the two before it, modulo TOKENS."""
    tokens = torch.randint(0, TOKENS, (count, 2), generator=generator)
    while tokens.shape[1] <= LENGTH:
        tokens = torch.cat([tokens, (tokens[:, -1:] + tokens[:, -2:-1]) % TOKENS], dim=1)
    return tokens


def sharded(model: Transformer) -> nn.Module:
    """The model with each weight in as many shards as there are ranks."""
    if not hasattr(getattr(getattr(torch, "cpu", None), "Stream", None), "record_event"):  # as FSDP2 needs it
        sys.exit(f"shards need a newer PyTorch, such as 2.13 (this is {torch.__version__}): choose --parallel ddp")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="mrc")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="sequences per rank and step (16)")
    parser.add_argument("--parallel", choices=("shards", "ddp"), default="shards", help="how ranks share (shards)")
    options = parser.parse_args()
    if options.backend == "mrc":
        import mrclab.torch  # noqa: F401 (registers the backend)

    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    rank = dist.get_rank()

    torch.manual_seed(1)
    whole = Transformer(width=64, heads=4, layers=2)
    model = sharded(whole) if options.parallel == "shards" else DistributedDataParallel(whole)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    draw = torch.Generator().manual_seed(rank)
    for step in range(options.steps):
        batch = sequences(options.batch, draw)
        scores = model(batch[:, :LENGTH])
        loss = nn.functional.cross_entropy(scores.reshape(-1, TOKENS), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step:4}  loss {mean.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
