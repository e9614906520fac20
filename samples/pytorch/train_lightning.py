"""The small GPT in a Lightning module: a callback, which fits other modules as well, shows the steps and their metrics.

    torchrun --nproc_per_node 2 train_lightning.py
    shardscope-record -o lightning.sqlite -- torchrun --nproc_per_node 2 -m shardscope_torch train_lightning.py

On GPUs in fp16 with a dynamic loss scale, else in fp32.
"""

import os
import sys

import small_gpt
import torch
from torch.profiler import record_function

try:
    import lightning
except ImportError as error:
    sys.exit("train_lightning.py needs Lightning: pip install lightning ({})".format(error))


class Recorder(lightning.Callback):
    """Shows a trace the steps of the optimizer, and the loss, learning rate and loss scale of each."""

    def __init__(self):
        self.step, self.range, self.metrics = 0, None, {}

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if self.range is None:  # else a further micro-batch of the step
            self.step = trainer.global_step
            self.range = record_function("ProfilerStep#{}".format(self.step))
            self.range.__enter__()

    def on_before_optimizer_step(self, trainer, module, optimizer):
        # What this step uses: the scheduler and the scale's rule change both afterwards.
        self.metrics["learning_rate"] = optimizer.param_groups[0]["lr"]
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        if scaler is not None:
            self.metrics["loss_scale"] = scaler.get_scale()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == self.step:
            return
        self.metrics["loss"] = outputs["loss"].item()
        with record_function("metric " + " ".join("{}={}".format(*pair) for pair in self.metrics.items())):
            pass
        self.on_train_end(trainer, module)

    def on_train_end(self, trainer, module):
        if self.range is not None:
            self.range.__exit__(None, None, None)
            self.range = None


class LightningGpt(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.gpt = small_gpt.Gpt()

    def training_step(self, tokens, batch_idx):
        logits = self.gpt(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        if self.trainer.is_global_zero:
            print("step {} loss {:.4f}".format(self.trainer.global_step, loss.item()), flush=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": warm_up, "interval": "step"}}


def main():
    ranks, of_host = (int(os.environ.get(name, "1")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    lightning.seed_everything(0)
    samples = ranks * small_gpt.BATCH * small_gpt.STEPS
    tokens = torch.randint(0, small_gpt.VOCABULARY, (samples, small_gpt.CONTEXT + 1))
    trainer = lightning.Trainer(
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        precision="16-mixed" if torch.cuda.is_available() else "32-true",
        devices=of_host,
        num_nodes=ranks // of_host,
        strategy="ddp" if ranks > 1 else "auto",
        max_epochs=1,
        callbacks=[Recorder()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    # Under several ranks Lightning gives each its own part of the data.
    trainer.fit(LightningGpt(), torch.utils.data.DataLoader(tokens, batch_size=small_gpt.BATCH))


if __name__ == "__main__":
    main()
