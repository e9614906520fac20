// Stores past the caches, for what is larger than they are: a plain store reads each line of memory before it
// overwrites it (3 bytes move for 2 that are asked for), and drives out what the caches hold.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// As memcpy. For parts of a large output that come from the first cache.
void streaming_copy(const void* in, void* out, std::size_t bytes);

// As sum_ranks, the same bits. Reads and stores go on side by side: in blocks, one would wait for the other.
template <class T>
void streaming_sum(const T* const* inputs, int ranks, T* out, std::size_t n, double factor);

// What the ranks of a host write is expected to stay in the last cache until it is read, up to these bytes: a
// quarter of it. Inputs need room too, and so do the other programs (or guests) of the processor.
std::size_t cached_bytes();

}  // namespace shardscope::trainer::kernels
