"""PyTorch: DistributedDataParallel, not ours."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel, replicate


def setup(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)


def train(rank, world, model, loader):
    setup(rank, world)
    model = DistributedDataParallel(model)
    copies = replicate(model, [0, 1])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for x, y in loader:
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
        dist.all_reduce(losses[-1])
    out = torch.vmap(lambda v: v * 2)(x)
    print(out[0], out[1:], losses[0], copies[0])
    for row in out:
        print(row)
