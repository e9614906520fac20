"""The small GPT under fully_shard (FSDP2): each parameter is sharded for itself, those of a block are gathered together.

    torchrun --nproc_per_node 2 fsdp2.py

Needs PyTorch 2.6.
"""

import sys

import small_gpt
import torch

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
except (ImportError, ValueError) as error:
    sys.exit("fsdp2.py needs PyTorch 2.6 or later; this is {} ({})".format(torch.__version__, error))


def main():
    device = small_gpt.begin()
    model = small_gpt.Gpt().to(device)
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    small_gpt.train(model, device)


if __name__ == "__main__":
    main()
