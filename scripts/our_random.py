"""What shardscope-train draws from a seed, in numpy: trainer/kernels/random.h, trainer/data/synthetic.h and sampler.h.
Normal numbers are within rounding of its own, the others the same bits."""

import numpy as np

_M64 = (1 << 64) - 1


def _mixed(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _M64
    return x ^ x >> 31


def stream_of(path):
    value = 0xCBF29CE484222325
    for letter in path.encode():
        value = (value ^ letter) * 0x100000001B3 & _M64
    return _mixed(value)


def _words(seed, stream, counters):
    """Philox4x32-10 of each counter: [counters, 4] of uint32."""
    low = np.uint64(0xFFFFFFFF)
    c = [counters & low, counters >> np.uint64(32),
         np.full_like(counters, stream & 0xFFFFFFFF), np.full_like(counters, stream >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [b >> np.uint64(32) ^ c[1] ^ np.uint64(key[0]), b & low, a >> np.uint64(32) ^ c[3] ^ np.uint64(key[1]), a & low]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return np.stack(c, -1)


def random_bits(seed, stream, index):
    words = _words(seed, stream, np.array([index], dtype=np.uint64))[0]
    return int(words[1]) << 32 | int(words[0])


def uniform(seed, stream, index):
    """A number from [0, 1)."""
    words = _words(seed, stream, np.array([index // 4], dtype=np.uint64))[0]
    return float((words[index % 4] >> np.uint64(8)) * 2.0**-24)


def normals(seed, stream, count, first=0):
    """Elements [first, first + count) of a stream, by Box and Muller, in fp32."""
    counters = np.arange(first // 4, (first + count + 3) // 4, dtype=np.uint64)
    unit = (_words(seed, stream, counters) >> np.uint64(8)) * 2.0**-24
    radius = np.sqrt(-2 * np.log(unit[:, 0::2] + 2.0**-24))
    angle = 2 * np.pi * unit[:, 1::2]
    made = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)
    return made[first % 4 :][:count].astype(np.float32)


def synthetic(seed, width, samples):
    """The inputs and targets of these samples of data.type "synthetic", [samples, width] each."""
    offset = normals(seed, stream_of("data.synthetic.offset"), width) / 2
    weight = normals(seed, stream_of("data.synthetic.weight"), 4 * width).reshape(4, width) / 2
    shifts = [random_bits(seed, stream_of("data.synthetic.shift"), tap) % width for tap in range(4)]
    indices = (width + 63) // 64 * 64
    x = np.stack([normals(seed, stream_of("data.synthetic.input"), width, s * indices) for s in samples])
    u = sum(weight[tap] * np.roll(x, -shifts[tap], 1) for tap in range(4))
    return x, (offset + u / np.sqrt(1 + u * u)).astype(np.float32)


def window_at(seed, windows, position):
    """The window of a text that training shows at a position."""
    half = ((windows - 1).bit_length() + 1) // 2
    epoch, place = divmod(position, windows)
    keys = [random_bits(seed, stream_of("data.sampler"), epoch * 8 + r) for r in range(8)]
    while True:
        left, right = place >> half, place & (1 << half) - 1
        for key in keys:
            left, right = right, left ^ _mixed(right + key & _M64) & (1 << half) - 1
        place = left << half | right
        if place < windows:
            return place
