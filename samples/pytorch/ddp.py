"""The small GPT under DistributedDataParallel: every rank holds everything, gradients are reduced in buckets.

    torchrun --nproc_per_node 2 ddp.py
"""

import small_gpt
from torch.nn.parallel import DistributedDataParallel


def main():
    device = small_gpt.begin()
    model = small_gpt.Gpt().to(device)
    # Small buckets: several all-reduces, which the backward hides.
    small_gpt.train(DistributedDataParallel(model, bucket_cap_mb=1), device)


if __name__ == "__main__":
    main()
