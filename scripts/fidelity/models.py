"""The models of shardscope-train as PyTorch modules, with the same names, classes, shapes and parameters.

The perceptron is made of PyTorch's own operations. In the language models, what shardscope-train does in one kernel
(attention, rotary embedding, SwiGLU's gate, normalisations, embeddings, the loss) is one autograd function here that
allocates what that kernel allocates and computes nothing: what a kernel keeps is the kernel's matter; what is compared
is how PyTorch shards, gathers, frees and reduces around it.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function


def _like(x, *shape, dtype=None):
    return torch.empty(shape or x.shape, dtype=dtype or x.dtype)


# --- kernels: allocations only -----------------------------------------------------------------------------

class _Embed(Function):
    @staticmethod
    def forward(ctx, tokens, weight):
        ctx.save_for_backward(tokens)
        ctx.table = weight.shape
        return _like(weight, tokens.numel(), weight.shape[1])

    @staticmethod
    def backward(ctx, dy):
        return None, _like(dy, *ctx.table)


class _AddPositions(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.table = weight.shape
        return _like(x)

    @staticmethod
    def backward(ctx, dy):
        return dy, _like(dy, *ctx.table)


class _LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        rows = x.shape[0]
        y = _like(x)
        mean, rstd = _like(x, rows, dtype=torch.float32), _like(x, rows, dtype=torch.float32)
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, _, _ = ctx.saved_tensors
        return _like(x), _like(weight), _like(weight)


class _RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight):
        y = _like(x)
        rstd = _like(x, x.shape[0], dtype=torch.float32)
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, _ = ctx.saved_tensors
        return _like(x), _like(weight)


class _Attention(Function):
    """Keeps the probabilities ("plain")."""

    @staticmethod
    def forward(ctx, qkv, width, heads, context):
        rows = qkv.shape[0]
        y = _like(qkv, rows, width)
        probabilities = _like(qkv, rows // context, heads, context, context)
        ctx.save_for_backward(qkv, probabilities)
        ctx.context = context
        return y

    @staticmethod
    def backward(ctx, dy):
        qkv, _ = ctx.saved_tensors
        dqkv = _like(qkv)
        _like(qkv, ctx.context * ctx.context, dtype=torch.float32)  # scratch
        return dqkv, None, None, None


class _FusedAttention(Function):
    """Keeps the output and one number per row."""

    @staticmethod
    def forward(ctx, qkv, width, heads, context):
        rows = qkv.shape[0]
        y = _like(qkv, rows, width)
        logsumexp = _like(qkv, rows * heads, dtype=torch.float32)
        ctx.save_for_backward(qkv, y, logsumexp)
        return y

    @staticmethod
    def backward(ctx, dy):
        qkv, _, logsumexp = ctx.saved_tensors
        dqkv = _like(qkv)
        _like(logsumexp)  # scratch
        return dqkv, None, None, None


class _Rotate(Function):
    @staticmethod
    def forward(ctx, qkv, table):
        ctx.save_for_backward(table)
        return _like(qkv)

    @staticmethod
    def backward(ctx, dy):
        return _like(dy), None


class _SiluMul(Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return _like(gate)

    @staticmethod
    def backward(ctx, dy):
        return _like(dy), _like(dy)


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, targets):
        loss = torch.empty((), dtype=torch.float64)
        probabilities = _like(logits)
        ctx.save_for_backward(probabilities, targets)
        return loss

    @staticmethod
    def backward(ctx, _):
        probabilities, _ = ctx.saved_tensors
        return _like(probabilities), None


# --- modules -----------------------------------------------------------------------------------------------

class Linear(nn.Linear):
    pass


class Embedding(nn.Module):
    def __init__(self, entries, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(entries, width))

    def forward(self, tokens):
        return _Embed.apply(tokens, self.weight)


class PositionEmbedding(Embedding):
    def forward(self, x):
        return _AddPositions.apply(x, self.weight)


class LayerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return _LayerNorm.apply(x, self.weight, self.bias)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return _RMSNorm.apply(x, self.weight)


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        net = []
        for i in range(c.layers):
            net += ([nn.ReLU()] if i else []) + [Linear(c.width, c.width, bias=c.bias)]
        self.net = nn.Sequential(*net)

    def forward(self, x):
        return self.net(x)


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.expand, self.gelu, self.projection = Linear(width, 4 * width), nn.GELU(), Linear(4 * width, width)

    def forward(self, x):
        return self.projection(self.gelu(self.expand(x)))


class CausalSelfAttention(nn.Module):
    def __init__(self, c, kv_heads, bias):
        super().__init__()
        self.shape = (c.width, c.heads, c.context)
        self.kernel = _FusedAttention if c.attention == "fused" else _Attention
        self.qkv = Linear(c.width, (c.heads + 2 * kv_heads) * (c.width // c.heads), bias=bias)
        self.projection = Linear(c.width, c.width, bias=bias)

    def forward(self, x, table=None):
        qkv = self.qkv(x)
        if table is not None:
            qkv = _Rotate.apply(qkv, table)
        y = self.kernel.apply(qkv, *self.shape)
        del qkv
        return self.projection(y)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm_1, self.attention = LayerNorm(c.width), CausalSelfAttention(c, c.heads, True)
        self.norm_2, self.feed_forward = LayerNorm(c.width), FeedForward(c.width)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.token_embedding = Embedding(256, c.width)
        self.position_embedding = PositionEmbedding(c.context, c.width)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = LayerNorm(c.width)
        self.head = Linear(c.width, 256, bias=False)
        if c.tied:
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens):
        x = self.position_embedding(self.token_embedding(tokens))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class SwiGLU(nn.Module):
    def __init__(self, width):
        super().__init__()
        multiple = 16 if width < 512 else 256
        hidden = (8 * width // 3 + multiple - 1) // multiple * multiple
        self.w1, self.w3 = Linear(width, hidden, bias=False), Linear(width, hidden, bias=False)
        self.w2 = Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.w2(_SiluMul.apply(self.w1(x), self.w3(x)))


class LlamaBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm_1, self.attention = RMSNorm(c.width), CausalSelfAttention(c, c.kv_heads or c.heads, False)
        self.norm_2, self.feed_forward = RMSNorm(c.width), SwiGLU(c.width)

    def forward(self, x, table):
        x = x + self.attention(self.norm_1(x), table)
        return x + self.feed_forward(self.norm_2(x))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.angles = (c.context, c.width // c.heads)
        self.dtype = torch.bfloat16 if c.param == "bf16" else torch.float32  # of the table, as precision.buffer
        self.token_embedding = Embedding(256, c.width)
        self.blocks = nn.ModuleList(LlamaBlock(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.width)
        self.head = Linear(c.width, 256, bias=False)
        if c.tied:
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens):
        table = torch.empty(self.angles, dtype=self.dtype)
        x = self.token_embedding(tokens)
        for block in self.blocks:
            x = block(x, table)
        return self.head(self.norm(x))


CLASSES = {
    c.__name__: c
    for c in (Linear, Embedding, LayerNorm, RMSNorm, FeedForward, CausalSelfAttention, Block, SwiGLU, LlamaBlock)
}


def make(configuration):
    return {"mlp": MLP, "gpt": GPT, "llama": Llama}[configuration.model](configuration)


def batch(configuration):
    """Input and target."""
    c = configuration
    if c.model == "mlp":
        return torch.zeros(c.batch, c.width), torch.zeros(c.batch, c.width)
    return (torch.zeros(c.batch * c.context, dtype=torch.int32), torch.zeros(c.batch * c.context, dtype=torch.int32))


def loss(configuration, output, target):
    scores = output.float()
    return F.mse_loss(scores, target) if configuration.model == "mlp" else _CrossEntropy.apply(scores, target)
