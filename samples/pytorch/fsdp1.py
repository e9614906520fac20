"""The small GPT under FullyShardedDataParallel (FSDP1): a flat parameter for each block, and one for the rest.

    torchrun --nproc_per_node 2 fsdp1.py

Needs PyTorch 2.0; on the processor, where gloo must reduce and scatter, a later one (2.12 is tried).
"""

import sys

import small_gpt
import torch

try:
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
except (ImportError, ValueError) as error:
    sys.exit("fsdp1.py needs PyTorch 2.0 or later; this is {} ({})".format(torch.__version__, error))


def main():
    device = small_gpt.begin()
    model = FullyShardedDataParallel(
        small_gpt.Gpt(), auto_wrap_policy=ModuleWrapPolicy({small_gpt.Block}), device_id=device, use_orig_params=True
    )
    small_gpt.train(model, device)


if __name__ == "__main__":
    main()
