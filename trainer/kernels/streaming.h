// Stores that bypass the caches, for data larger than they are: a plain store reads each line of memory
// before it overwrites it (3 bytes move for 2 that are needed), and evicts the caches' contents.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// As memcpy, for parts of a large output that come from the L1 cache.
void streaming_copy(const void* in, void* out, std::size_t bytes);

// As sum_ranks, with the same bits. Reads and stores overlap; block by block, they would wait for each other.
template <class T>
void streaming_sum(const T* const* inputs, int ranks, T* out, std::size_t n, double factor);

// How many bytes written by the ranks of a host are expected to stay in the last-level cache until they are
// read: a quarter of its size, because inputs and other programs (or virtual machines) need room too.
std::size_t cached_bytes();

}  // namespace shardscope::trainer::kernels
