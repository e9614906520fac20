"""The small GPT under DeepSpeed's ZeRO; its loss, learning rate, gradient norm and loss scale are metrics of the trace.

    torchrun --nproc_per_node 2 train_deepspeed.py
    shardscope-record -o zero.sqlite -- torchrun --nproc_per_node 2 -m shardscope_torch train_deepspeed.py

STAGE=1, 2 or 3 in the environment: what ZeRO shards (2). In fp16 with a dynamic loss scale where the device has fp16,
else in fp32.
"""

import os
import sys

import small_gpt
import torch
from torch.profiler import record_function

try:
    import deepspeed
    from deepspeed.accelerator import get_accelerator
except ImportError as error:
    sys.exit("train_deepspeed.py needs DeepSpeed: pip install deepspeed ({})".format(error))

RATE = 1e-3
STAGE = int(os.environ.get("STAGE", "2"))


def configuration():
    return {
        "train_micro_batch_size_per_gpu": small_gpt.BATCH,
        "zero_optimization": {"stage": STAGE},
        # The scale begins at 2^24: the first steps overflow, are skipped, and halve it.
        "fp16": {"enabled": bool(get_accelerator().is_fp16_supported()), "initial_scale_power": 24, "hysteresis": 1},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": RATE, "warmup_num_steps": 4}},
    }


def main():
    if "RANK" not in os.environ:
        sys.exit("start it with torchrun: torchrun --nproc_per_node 2 train_deepspeed.py")
    deepspeed.init_distributed()
    torch.manual_seed(0)  # the same weights on every rank
    model = small_gpt.Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    # DeepSpeed admits an optimizer that it does not know only on request; ZeRO shards this one element by element.
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=optimizer, config={**configuration(), "zero_allow_untested_optimizer": True}
    )
    rank = torch.distributed.get_rank()
    torch.manual_seed(1 + rank)  # different tokens on each rank
    for step in range(small_gpt.STEPS):
        # A step that overflows ends without the optimizer's step(), by which shardscope_torch would know its end.
        with record_function("ProfilerStep#{}".format(step)):
            tokens = torch.randint(0, small_gpt.VOCABULARY, (small_gpt.BATCH, small_gpt.CONTEXT + 1))
            tokens = tokens.to(engine.device)
            logits = engine(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
            engine.backward(loss)
            # What this step used: the scheduler and the scale's rule change both in engine.step().
            metrics = {"loss": loss.item(), "learning_rate": engine.optimizer.param_groups[0]["lr"]}
            if engine.fp16_enabled():
                metrics["loss_scale"] = engine.optimizer.loss_scale
            engine.step()
            if engine.was_step_applied():
                metrics["gradient_norm"] = float(engine.get_global_grad_norm())
            metrics["skipped_steps"] = engine.skipped_steps
            with record_function("metric " + " ".join("{}={}".format(*pair) for pair in metrics.items())):
                pass
        if rank == 0:
            print("step {} loss {:.4f}".format(step, metrics["loss"]), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
