"""The small GPT under Horovod; its loss, learning rate and, in fp16, its loss scale are metrics of the trace.

    horovodrun -np 2 python3 train_horovod.py
    shardscope-record -o horovod.sqlite -- horovodrun -np 2 python3 -m shardscope_torch train_horovod.py

FP16=0 or 1 in the environment: autocast to fp16 with a dynamic loss scale; without it on GPUs only.
"""

import os
import sys

import small_gpt
import torch
from torch.profiler import record_function

try:
    import horovod.torch as hvd
except ImportError as error:
    sys.exit("train_horovod.py needs Horovod: pip install 'horovod[pytorch]' ({})".format(error))


def main():
    hvd.init()
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    half = os.environ.get("FP16", str(int(device.type == "cuda"))) == "1"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    torch.manual_seed(hvd.rank())  # different tokens on each rank; the weights are rank 0's
    model = small_gpt.Gpt().to(device)
    # Horovod's rule for its averaged gradients: the rate grows with the ranks.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3 * hvd.size())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / hvd.size(), total_iters=3)
    scaler = torch.amp.GradScaler(device.type, enabled=half)
    for step in range(small_gpt.STEPS):
        # A step whose gradients overflow ends without the optimizer's step(), by which shardscope_torch would know
        # its end.
        with record_function("ProfilerStep#{}".format(step)):
            tokens = torch.randint(0, small_gpt.VOCABULARY, (small_gpt.BATCH, small_gpt.CONTEXT + 1)).to(device)
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.float16, enabled=half):
                logits = model(tokens[:, :-1])
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            scaler.scale(loss).backward()
            # What this step uses: the scheduler and the scale's rule change both afterwards.
            metrics = {"learning_rate": optimizer.param_groups[0]["lr"]}
            if half:
                metrics["loss_scale"] = scaler.get_scale()
            # The scaler must see the reduced gradients, so that all ranks skip the same steps.
            with record_function("Horovod.synchronize"):
                optimizer.synchronize()
            with optimizer.skip_synchronize():
                scaler.step(optimizer)
            scaler.update()
            warm_up.step()
            metrics["loss"] = hvd.allreduce(loss.detach(), name="loss").item()  # the mean over all ranks
            with record_function("metric " + " ".join("{}={}".format(*pair) for pair in metrics.items())):
                pass
        if hvd.rank() == 0:
            print("step {} loss {:.4f}".format(step, metrics["loss"]), flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
