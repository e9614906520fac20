// Memory that a kernel needs only while it runs: one growing block per thread and purpose, kept until the
// thread ends, so that a step allocates nothing. Like a BLAS's own buffers it is not part of the memory
// account. Contents are undefined; the block of a purpose belongs to the last kernel that requested it.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

enum class Purpose : unsigned char { rows, heads, operand_a, operand_b, product, order, library, count };

// At least `bytes`, aligned for vectors (64 bytes).
std::byte* workspace(Purpose purpose, std::size_t bytes);

template <class T>
T* workspace_of(Purpose purpose, std::size_t n) {
    return reinterpret_cast<T*>(workspace(purpose, n * sizeof(T)));
}

}  // namespace shardscope::trainer::kernels
