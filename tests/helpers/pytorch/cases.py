"""A program of one rank: runs collectives that a test has drawn, and compares each with what one process computes.

Every rank can make every other rank's input, so the truth needs no network: PyTorch's own operations, in rank order.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import mrclab.torch  # noqa: F401

DTYPES = {
    name: getattr(torch, name) for name in ("float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64")
}


def tensor(case, rank, part=0):
    """The input of a rank: small whole numbers, so that sums are exact in every dtype, unless the case says `real`."""
    generator = torch.Generator().manual_seed(case["seed"] * 1000 + rank * 10 + part)
    if case["real"]:
        made = torch.randn(case["shape"], generator=generator).to(DTYPES[case["dtype"]])
    else:
        made = torch.randint(0, 2, case["shape"], generator=generator).to(DTYPES[case["dtype"]])
    if case["strided"]:
        wide = torch.zeros([*case["shape"], 2], dtype=made.dtype)
        wide[..., 0] = made
        return wide[..., 0]
    return made


def combined(case, tensors):
    total = tensors[0].clone()
    for other in tensors[1:]:
        if case["op"] in ("SUM", "AVG"):
            total = torch.logical_or(total, other) if total.dtype == torch.bool else total + other
        elif case["op"] == "PRODUCT":
            total = total * other
        else:
            total = (torch.minimum if case["op"] == "MIN" else torch.maximum)(total, other)
    return total / len(tensors) if case["op"] == "AVG" else total


def same(case, found, truth):
    """Whole numbers to the bit; real ones within what another order of additions may change."""
    assert (found.dtype, found.shape) == (truth.dtype, truth.shape), case
    if not case["real"]:
        assert torch.equal(found, truth), (case, found, truth)
    else:
        bound = 2.0 ** (-6 if found.dtype == torch.bfloat16 else -18) * 4
        assert torch.allclose(found.to(torch.complex128), truth.to(torch.complex128), rtol=bound, atol=bound), case


def run(case, rank, ranks, group):
    """The tensors that a collective gave this rank, after comparing them."""
    members = case["members"]
    place = members.index(rank)
    inputs = {other: tensor(case, other) for other in members}
    mine, op, root = inputs[rank], getattr(dist.ReduceOp, case["op"]), members[case["root"] % len(members)]
    empty = [torch.zeros_like(mine) for _ in members]
    name = case["name"]
    if name == "all_reduce":
        dist.all_reduce(mine, op, group=group)
        same(case, mine, combined(case, [tensor(case, other) for other in members]))
        return [mine]
    if name == "reduce":
        dist.reduce(mine, root, op, group=group)
        if rank == root:
            same(case, mine, combined(case, [tensor(case, other) for other in members]))
        else:
            assert torch.equal(mine, tensor(case, rank))  # nothing but the root's changes
        return []
    if name == "broadcast":
        dist.broadcast(mine, root, group=group)
        assert torch.equal(mine, tensor(case, root))
        return [mine]
    if name == "all_gather":
        dist.all_gather(empty, mine, group=group)
        assert all(torch.equal(found, inputs[other]) for found, other in zip(empty, members, strict=False))
        return empty
    if name == "reduce_scatter":
        parts = [tensor(case, rank, part) for part in range(len(members))]
        dist.reduce_scatter(empty[0], parts, op, group=group)
        same(case, empty[0], combined(case, [tensor(case, other, place) for other in members]))
        assert all(torch.equal(part, tensor(case, rank, number)) for number, part in enumerate(parts))
        return []
    if name == "all_to_all":
        dist.all_to_all(empty, [tensor(case, rank, part) for part in range(len(members))], group=group)
        assert all(torch.equal(found, tensor(case, other, place)) for found, other in zip(empty, members, strict=False))
        return []
    if name == "gather":
        dist.gather(mine, empty if rank == root else None, root, group=group)
        assert rank != root or all(
            torch.equal(found, inputs[other]) for found, other in zip(empty, members, strict=False)
        )
        return []
    if name == "scatter":
        pieces = [tensor(case, root, part) for part in range(len(members))]
        dist.scatter(empty[0], pieces if rank == root else None, root, group=group)
        assert torch.equal(empty[0], tensor(case, root, place))
        return []
    assert name == "send_recv"
    if len(members) == 1:
        return []
    after, before = members[(place + 1) % len(members)], members[(place - 1) % len(members)]
    works = [dist.isend(mine, after, group=group, tag=3), dist.irecv(empty[0], before, group=group, tag=3)]
    for work in works:
        work.wait()
    assert torch.equal(empty[0], inputs[before])
    return []


def digest(found):
    flat = torch.empty(found.numel(), dtype=found.dtype)
    flat.copy_(found.reshape(-1))
    return hashlib.sha256(bytes(flat.view(torch.uint8).tolist())).hexdigest()


def main():
    dist.init_process_group("mrc")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    digests: list[list[str] | None] = []
    groups = {}
    for case in json.loads(Path(sys.argv[1]).read_text()):
        members = tuple(case["members"])
        if members not in groups:
            groups[members] = dist.new_group(list(members))
        if rank in members:
            found = run(case, rank, ranks, groups[members])
            digests.append([digest(one) for one in found])
        else:
            digests.append(None)
    print(json.dumps(digests), flush=True)
    dist.destroy_process_group()


main()
