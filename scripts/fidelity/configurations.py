"""What is compared: configurations of a training job, which both PyTorch and shardscope-train understand."""

import dataclasses
import itertools
import random


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A job, independent of who runs it. Sizes are counts of elements, buckets are in MiB."""

    model: str = "mlp"
    layers: int = 4
    width: int = 64
    heads: int = 4
    kv_heads: int = 0
    context: int = 16
    batch: int = 8
    bias: bool = True
    tied: bool = False
    attention: str = "plain"

    wrapper: str = "fsdp1"  # ddp, fsdp1 (FullyShardedDataParallel), fsdp2 (fully_shard)
    ranks: int = 2
    rank: int = 0  # whose view PyTorch takes; ours is the same for every rank
    strategy: str = "FULL_SHARD"
    wrap: str = "root"  # as fsdp.wrap in a job
    exclude: str = "none"  # as fsdp.exclude
    unit: str = "none"  # as fsdp.unit
    reshard: str = "auto"  # as fsdp.reshard_after_forward
    shard_group: int = 0
    backward_prefetch: str = "BACKWARD_PRE"
    forward_prefetch: bool = False
    limit_all_gathers: bool = True
    cpu_offload: bool = False
    use_orig_params: bool = True  # fsdp1; ours has one layout for both

    bucket_cap_mb: float = 25
    first_bucket_mb: float = 25  # PyTorch has another first bucket only if bucket_cap_mb is not given: 1
    static_graph: bool = False
    gradient_as_bucket_view: bool = False

    param: str = "fp32"
    reduce: str = "fp32"
    checkpointing: str = ""  # a class
    reentrant: bool = False  # the implementation of checkpointing
    accumulation: int = 1
    accumulation_sync: bool = True
    optimizer: str = "sgd"

    @property
    def name(self):
        """The model and the wrapper, then whatever differs from a default."""
        parts = [self.model, self.wrapper, "ranks=%d" % self.ranks]
        if self.wrapper != "ddp":
            parts += [self.strategy, "wrap=" + self.wrap]
        shown = {"model", "wrapper", "ranks", "strategy", "wrap"}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in shown and value != field.default:
                parts.append("%s=%s" % (field.name, str(value).lower() if isinstance(value, bool) else value))
        return " ".join(parts)

    @property
    def shards(self):
        """The ranks that share the shards of a unit."""
        if self.wrapper == "ddp" or self.strategy == "NO_SHARD":
            return 1
        return self.shard_group or self.ranks

    def given(self):
        """The fields that differ from their defaults: what a log keeps."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}

    def job(self, text_path):
        """The job file. `text_path` is any file: a dry run does not read it."""
        language = self.model != "mlp"
        sections = {
            "run": {"steps": 4, "ranks": self.ranks, "device": "cpu"},
            "model": {"type": self.model, "layers": self.layers, "width": self.width},
            "data": {"type": "text" if language else "synthetic", "batch": self.batch},
            "parallel": {"mode": "ddp" if self.wrapper == "ddp" else "fsdp"},
            "train": {"accumulation": self.accumulation, "accumulation_sync": self.accumulation_sync},
            "precision": {"param": self.param, "reduce": self.reduce},
            "optimizer": {"type": self.optimizer},
        }
        if language:
            sections["data"]["path"] = text_path
            sections["model"].update(
                heads=self.heads, context=self.context, attention=self.attention, tied_embeddings=self.tied
            )
            if self.kv_heads:
                sections["model"]["kv_heads"] = self.kv_heads
        else:
            sections["model"]["bias"] = self.bias
        if self.wrapper == "ddp":
            sections["ddp"] = {
                "bucket_cap_mb": self.bucket_cap_mb,
                "first_bucket_mb": self.first_bucket_mb,
                "static_graph": self.static_graph,
                "gradient_as_bucket_view": self.gradient_as_bucket_view,
            }
        else:
            sections["fsdp"] = {
                "layout": self.wrapper,
                "sharding_strategy": self.strategy,
                "wrap": self.wrap,
                "backward_prefetch": self.backward_prefetch,
                "forward_prefetch": self.forward_prefetch,
                "limit_all_gathers": self.limit_all_gathers and self.wrapper == "fsdp1",  # fully_shard has none
                "cpu_offload": self.cpu_offload,
            }
            if self.shard_group:
                sections["fsdp"]["shard_group"] = self.shard_group
            for key, value in (("exclude", self.exclude), ("unit", self.unit), ("reshard_after_forward", self.reshard)):
                if value not in ("none", "auto"):
                    sections["fsdp"][key] = value
        if self.checkpointing:
            sections["memory"] = {"activation_checkpointing": "module:" + self.checkpointing}
        lines = []
        for section, keys in sections.items():
            lines.append("[%s]" % section)
            lines += ["%s = %s" % (key, _toml(value)) for key, value in keys.items()]
        return "\n".join(lines) + "\n"


def _toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    return '"%s"' % value if isinstance(value, str) else str(value)


def from_given(given):
    return Configuration(**given)


# --- the list ----------------------------------------------------------------------------------------------

MODELS = {
    "mlp": dict(model="mlp"),
    "gpt": dict(model="gpt", layers=3, width=32, batch=2),
    "llama": dict(model="llama", layers=3, width=32, batch=2, kv_heads=2),
}
WRAPS = {
    "mlp": ("root", "module:Linear", "size:8000"),
    "gpt": ("root", "module:Block", "module:Block,FeedForward", "module:Linear", "size:4000"),
    "llama": ("root", "module:LlamaBlock", "module:LlamaBlock,SwiGLU", "module:Linear"),
}
CHOSEN = {
    "mlp": (dict(wrap="every:2,Linear"), dict(wrap="path:net.0,net.6"), dict(wrap="module:Linear", exclude="path:net.0")),
    "gpt": (dict(wrap="every:2,Block"), dict(wrap="path:blocks.*.feed_forward"), dict(wrap="path:blocks.*,head"),
            dict(wrap="module:Linear", exclude="path:**.qkv"), dict(wrap="size:4000", exclude="module:Embedding")),
    "llama": (dict(wrap="every:2,LlamaBlock"), dict(wrap="path:blocks.?.attention,blocks.0"),
              dict(wrap="module:LlamaBlock,SwiGLU", exclude="every:2,SwiGLU")),
}
UNITS = {"mlp": "module:Linear", "gpt": "module:Block", "llama": "module:LlamaBlock"}  # the usual wrap
BLOCKS = {"mlp": "Linear", "gpt": "Block", "llama": "LlamaBlock"}


def _grid(**axes):
    names = list(axes)
    for values in itertools.product(*axes.values()):
        yield dict(zip(names, values))


def _hybrid(strategy):
    return dict(strategy=strategy, ranks=4, shard_group=2)


def configurations():
    """All configurations, in the order of the table; no two are the same."""
    out = []

    def add(model, wrapper, **given):
        out.append(Configuration(**{**MODELS[model], "wrapper": wrapper, **given}))

    for model in MODELS:
        usual = UNITS[model]
        # Strategy, wrap and ranks decide what a unit is; all of their combinations.
        for c in _grid(strategy=("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"), wrap=WRAPS[model], ranks=(1, 2, 3, 4)):
            add(model, "fsdp1", **c)
        for c in _grid(strategy=("FULL_SHARD", "SHARD_GRAD_OP"), wrap=WRAPS[model], ranks=(1, 2, 3, 4)):
            add(model, "fsdp2", **c)
        # Units by path, every second one, without some, and those treated otherwise than the others.
        for wrapper in ("fsdp1", "fsdp2"):
            for given in CHOSEN[model]:
                for strategy in ("FULL_SHARD", "SHARD_GRAD_OP"):
                    add(model, wrapper, strategy=strategy, **given)
            last = {"mlp": "path:net.6", "gpt": "path:blocks.2", "llama": "path:blocks.2"}[model]
            add(model, wrapper, wrap=usual, unit=last + "=false")
            add(model, wrapper, wrap=usual, unit=last + "=false", param="bf16", reduce="fp32")
            add(model, wrapper, wrap=usual, unit=usual + "=true " + last + "=false", strategy="SHARD_GRAD_OP",
                accumulation=2, accumulation_sync=False)
            add(model, wrapper, wrap=usual, unit=last + "=true", strategy="_HYBRID_SHARD_ZERO2", ranks=4, shard_group=2)
            add(model, wrapper, wrap=usual, unit=last + "=false", forward_prefetch=True, checkpointing=BLOCKS[model])
        for wrap in ("root", usual):
            add(model, "fsdp2", wrap=wrap, reshard="true")
            add(model, "fsdp2", wrap=wrap, reshard="false")
            add(model, "fsdp2", wrap=wrap, reshard="true", param="bf16", reduce="fp32", accumulation=2,
                accumulation_sync=False)
        add(model, "fsdp2", wrap=usual, reshard="false", unit=last + "=true")
        for wrapper in ("fsdp1", "fsdp2"):
            for strategy in ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"):
                add(model, wrapper, wrap=usual, **_hybrid(strategy))
                add(model, wrapper, wrap=usual, param="bf16", reduce="fp32", **_hybrid(strategy))
                add(model, wrapper, wrap=usual, accumulation=2, accumulation_sync=False, **_hybrid(strategy))
        # Prefetch.
        for c in _grid(
            strategy=("FULL_SHARD", "SHARD_GRAD_OP"),
            backward_prefetch=("BACKWARD_PRE", "BACKWARD_POST", "NONE"),
            forward_prefetch=(False, True),
            limit_all_gathers=(True, False),
        ):
            add(model, "fsdp1", wrap=usual, **c)
        for strategy in ("FULL_SHARD", "SHARD_GRAD_OP"):
            add(model, "fsdp2", wrap=usual, strategy=strategy, forward_prefetch=True)
        # Precision, checkpointing, accumulation.
        for wrapper in ("fsdp1", "fsdp2"):
            strategies = ("FULL_SHARD", "SHARD_GRAD_OP") + (("NO_SHARD",) if wrapper == "fsdp1" else ())
            for c in _grid(
                strategy=strategies,
                precision=(("bf16", "bf16"), ("bf16", "fp32"), ("fp32", "bf16")),
                accumulation=((1, True), (2, True), (2, False)),
            ):
                (param, reduce), (count, sync) = c.pop("precision"), c.pop("accumulation")
                add(model, wrapper, wrap=usual, param=param, reduce=reduce, accumulation=count,
                    accumulation_sync=sync, **c)
            for c in _grid(strategy=strategies, accumulation=((2, True), (2, False), (3, False))):
                count, sync = c.pop("accumulation")
                add(model, wrapper, wrap=usual, accumulation=count, accumulation_sync=sync, **c)
            for c in _grid(
                strategy=strategies, wrap=("root", usual, "module:Linear"), prefetch=("BACKWARD_PRE", "NONE")
            ):
                prefetch = c.pop("prefetch")
                if wrapper == "fsdp2" and prefetch == "NONE":
                    continue
                add(model, wrapper, checkpointing=BLOCKS[model], backward_prefetch=prefetch, **c)
            for wrap in (usual, "module:Linear"):
                add(model, wrapper, checkpointing=BLOCKS[model], wrap=wrap, forward_prefetch=True)
            for strategy in strategies:
                add(model, wrapper, wrap=usual, strategy=strategy, cpu_offload=True)
            add(model, wrapper, wrap=usual, optimizer="adamw")
            add(model, wrapper, wrap=usual, ranks=4, rank=3)
        add(model, "fsdp1", wrap=usual, use_orig_params=False)
        # DDP.
        for c in _grid(
            ranks=(1, 2, 4),
            buckets=((25, 25), (0.02, 0.02), (0.05, 0.05)),
            view=(False, True),
            accumulation=((1, True), (2, True), (2, False)),
        ):
            (cap, first), (count, sync) = c.pop("buckets"), c.pop("accumulation")
            add(model, "ddp", bucket_cap_mb=cap, first_bucket_mb=first, gradient_as_bucket_view=c.pop("view"),
                accumulation=count, accumulation_sync=sync, **c)
        for sync in (True, False):
            add(model, "ddp", static_graph=True, accumulation=1 if sync else 2, accumulation_sync=sync,
                bucket_cap_mb=0.02, first_bucket_mb=0.02)
        add(model, "ddp", checkpointing=BLOCKS[model], bucket_cap_mb=0.02, first_bucket_mb=0.02)
        add(model, "ddp", optimizer="adamw")
    # Shapes that do not divide.
    for wrapper, ranks, rank in (("fsdp1", 3, 0), ("fsdp1", 3, 2), ("fsdp2", 3, 0), ("fsdp2", 3, 2), ("fsdp2", 4, 3)):
        for wrap in ("root", "module:Linear"):
            add("mlp", wrapper, width=37, layers=3, wrap=wrap, ranks=ranks, rank=rank)
    for orig in (True, False):
        add("mlp", "fsdp1", width=37, layers=3, wrap="module:Linear", ranks=2, use_orig_params=orig)
        add("mlp", "fsdp1", width=37, layers=3, wrap="module:Linear", ranks=2, param="bf16", reduce="bf16",
            use_orig_params=orig)
    # Tied weights.
    for model in ("gpt", "llama"):
        for wrapper, strategy in itertools.product(("fsdp1", "fsdp2"), ("FULL_SHARD", "SHARD_GRAD_OP")):
            for wrap in ("root", UNITS[model]):
                for count, sync in ((1, True), (2, False)):
                    add(model, wrapper, tied=True, wrap=wrap, strategy=strategy, accumulation=count,
                        accumulation_sync=sync)
        add(model, "fsdp1", tied=True, wrap=UNITS[model], param="bf16", reduce="fp32")
        add(model, "fsdp2", tied=True, wrap=UNITS[model], param="bf16", reduce="fp32")
        add(model, "ddp", tied=True)
        add(model, "ddp", tied=True, bucket_cap_mb=0.02, first_bucket_mb=0.02)
    return list(dict.fromkeys(out))


def drawn(count, seed):
    """Random configurations of FSDP1 and FSDP2 in fp32 and bf16, for peaks; the same seed draws the same."""
    draw = random.Random(seed)
    out = {}
    while len(out) < count:
        model = draw.choice(tuple(MODELS))
        wrapper = draw.choice(("fsdp1", "fsdp2"))
        strategies = ["FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"]
        strategy = draw.choice(strategies + (["NO_SHARD"] if wrapper == "fsdp1" else []))
        given = dict(
            model=model, wrapper=wrapper, strategy=strategy, layers=draw.randint(1, 6), batch=draw.randint(1, 9),
            width=draw.randint(2, 12) * 16, ranks=draw.randint(2, 8),
            forward_prefetch=draw.random() < 0.3, accumulation=draw.choice((1, 1, 2, 3)),
            accumulation_sync=draw.random() < 0.5, optimizer=draw.choice(("sgd", "adamw")),
            checkpointing=draw.choice(("", "", BLOCKS[model])))
        given.update(draw.choice([dict(wrap=wrap) for wrap in WRAPS[model]] + list(CHOSEN[model])))
        if given["wrap"] == UNITS[model] and strategy != "NO_SHARD" and draw.random() < 0.5:
            given["unit"] = UNITS[model].replace("module:", "every:2,") + "=" + draw.choice(("true", "false"))
        given["param"], given["reduce"] = draw.choice((("fp32", "fp32"), ("bf16", "bf16"), ("bf16", "fp32")))
        if given["accumulation"] == 1:
            given["accumulation_sync"] = True
        if "HYBRID" in strategy:
            given.update(ranks=draw.choice((4, 6, 8)), shard_group=2)
        if wrapper == "fsdp1":
            given.update(backward_prefetch=draw.choice(("BACKWARD_PRE", "BACKWARD_POST", "NONE")),
                         limit_all_gathers=draw.random() < 0.5)
        if model != "mlp":
            # A unit around one of its two uses takes a tied weight out of the other's reach in PyTorch.
            together = given["wrap"] == "root" or given["wrap"].startswith(UNITS[model])
            given.update(context=draw.choice((8, 16, 32, 64)), tied=draw.random() < 0.25 and together)
        if model == "llama":
            given.update(kv_heads=draw.choice((2, 4)))
        out[Configuration(**given)] = None
    return list(out)
