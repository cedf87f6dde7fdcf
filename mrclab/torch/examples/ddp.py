"""Trains a small network by DistributedDataParallel on data made on the spot. Nothing here knows of a lab.

torchrun --nproc-per-node 2 ddp.py --backend gloo
./lab launch --ranks h0..h3 -- python3 ddp.py
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CLASSES = 10
FEATURES = 64


def make_data(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points around one centre per class, with noise."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(CLASSES, FEATURES, generator=generator)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    return centres[labels] + 2.5 * torch.randn(count, FEATURES, generator=generator), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="mrc")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32, help="samples per rank and step (32)")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", help="rank 0 writes the last weights to this file")
    options = parser.parse_args()
    if options.backend == "mrc":
        import mrclab.torch  # noqa: F401 (registers the backend)

    torch.set_num_threads(1)  # the order of additions must not depend on threads
    dist.init_process_group(options.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(options.seed)
    network = nn.Sequential(nn.Linear(FEATURES, options.hidden), nn.ReLU(), nn.Linear(options.hidden, CLASSES))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    points, labels = make_data(options.seed, 4096)
    draw = torch.Generator().manual_seed(options.seed)
    for step in range(options.steps):
        batch = torch.randint(0, len(labels), (ranks, options.batch), generator=draw)[rank]
        optimizer.zero_grad()
        loss = loss_of(model(points[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step:4}  loss {loss.item():.4f}", flush=True)
    if rank == 0 and options.save:
        torch.save(network.state_dict(), options.save)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
