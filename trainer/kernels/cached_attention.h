// Attention of a few new tokens of each sequence to the keys and values of all that came before them, which
// are kept (a key/value cache; Shazeer: "Fast Transformer decoding", 2019, arXiv:1911.02150, section 2.4). T
// is float, Bf16 or Fp16 (arithmetic in fp32), row-major, thread safe. Shapes: B sequences, R new tokens of
// each, C width, H heads, d = C/H, G heads of keys and values, T the cache's room:
//   qkv        [B,R,C+2Gd]  as in attention.h
//   cache      [B,T,2Gd]    keys, then values of each position
//   positions  [B,R]        of the new tokens in their sequences, in [0, T)
//   out        [B,R,C]
#pragma once

#include <cstdint>

namespace shardscope::trainer::kernels {

struct CacheShape {
    int batch = 0, rows = 0, width = 0, heads = 0, kv_heads = 0, context = 0;

    int head_width() const { return width / heads; }
    int group() const { return heads / kv_heads; }  // query heads that share a key head
    int kv_row() const { return 2 * kv_heads * head_width(); }
    int row() const { return width + kv_row(); }
};

// Puts the new tokens' keys and values at their positions.
template <class T>
void store_keys(const T* qkv, const std::int32_t* positions, T* cache, const CacheShape& shape);

// A token sees what the cache has up to its own position, itself included: store_keys comes first.
template <class T>
void cached_attention_forward(const T* qkv, const T* cache, const std::int32_t* positions, T* out,
                              const CacheShape& shape);

}  // namespace shardscope::trainer::kernels
