"""A GPT-2 of Transformers under its Trainer: a callback, which fits other models as well, shows the steps and metrics.

    torchrun --nproc_per_node 2 hf_trainer.py
    shardscope-record -o hf.sqlite -- torchrun --nproc_per_node 2 -m shardscope_torch hf_trainer.py

Nothing is downloaded: the weights and the tokens are random. On GPUs in fp16 with a dynamic loss scale, else in fp32.
"""

import sys
import tempfile

import small_gpt
import torch
from torch.profiler import record_function

try:
    import transformers
    import accelerate  # noqa: F401  (the Trainer needs it)
except ImportError as error:
    sys.exit("hf_trainer.py needs Transformers: pip install 'transformers[torch]' ({})".format(error))


class Recorder(transformers.TrainerCallback):
    """Shows a trace the steps of the optimizer, and what the Trainer logs of each."""

    NAMES = {"loss": "loss", "grad_norm": "gradient_norm", "eval_loss": "validation_loss"}

    def __init__(self):
        self.trainer = None  # set it: callbacks are not told whose they are
        self.range, self.metrics = None, {}

    def on_step_begin(self, args, state, control, **kwargs):
        self.range = record_function("ProfilerStep#{}".format(state.global_step))
        self.range.__enter__()

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        # What this step uses: the scheduler and the scale's rule change both afterwards.
        self.metrics["learning_rate"] = optimizer.param_groups[0]["lr"]
        scaler = self.trainer.accelerator.scaler
        if scaler is not None:
            self.metrics["loss_scale"] = scaler.get_scale()

    def on_step_end(self, args, state, control, **kwargs):
        self.range.__exit__(None, None, None)

    def on_log(self, args, state, control, logs=None, **kwargs):
        """After on_step_end, which has counted the step; with logging_steps=1 for each."""
        self.metrics.update((ours, logs[theirs]) for theirs, ours in self.NAMES.items() if theirs in logs)
        if not self.metrics:
            return
        self.metrics["step"] = state.global_step - 1
        with record_function("metric " + " ".join("{}={}".format(*pair) for pair in self.metrics.items())):
            pass
        self.metrics = {}


class RandomTokens(torch.utils.data.Dataset):
    def __init__(self, samples):
        generator = torch.Generator().manual_seed(1)
        self.tokens = torch.randint(0, small_gpt.VOCABULARY, (samples, small_gpt.CONTEXT), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main():
    gpu = torch.cuda.is_available()
    transformers.set_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=small_gpt.VOCABULARY,
            n_positions=small_gpt.CONTEXT,
            n_embd=small_gpt.WIDTH,
            n_layer=small_gpt.LAYERS,
            n_head=small_gpt.HEADS,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            max_steps=small_gpt.STEPS,
            per_device_train_batch_size=small_gpt.BATCH,
            learning_rate=1e-3,
            warmup_steps=2,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=not gpu,
            fp16=gpu,
            ddp_find_unused_parameters=False,
        )
        recorder = Recorder()
        trainer = transformers.Trainer(model, arguments, train_dataset=RandomTokens(1024), callbacks=[recorder])
        recorder.trainer = trainer
        trainer.train()


if __name__ == "__main__":
    main()
