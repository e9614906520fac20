// See copies.h. The table of components travels as a kernel argument (up to 32,764 bytes since CUDA 12.1 on
// sm_70 and later: CUDA C++ Programming Guide, __global__ function argument processing), so nothing has to be
// allocated, copied or kept.
#include <algorithm>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/copies.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kChunk =
    16384;  // bytes, or elements, that a block moves: 4 words of 16 bytes per thread
constexpr int kFew = 16, kMany = 640;  // components per launch: 0.8 and 31 KiB of arguments

struct Entry {
    Component component;
    std::int64_t chunks = 0;       // of one piece
    std::int64_t first_block = 0;  // the component's first block in the grid
};

template <int kMost>
struct Table {
    Entry at[kMost];
};

// The whole block copies n words; all loads of a round come before its stores.
template <class Word>
__device__ void copy_words(const std::byte* from, std::byte* to, std::int64_t n) {
    constexpr int kRound = 4;
    const auto* in = reinterpret_cast<const Word*>(from);
    auto* out = reinterpret_cast<Word*>(to);
    for (std::int64_t begin = 0; begin < n; begin += kRound * kThreads) {
        Word words[kRound];
#pragma unroll
        for (int r = 0; r < kRound; ++r) {
            const std::int64_t i = begin + r * kThreads + threadIdx.x;
            if (i < n) words[r] = in[i];
        }
#pragma unroll
        for (int r = 0; r < kRound; ++r) {
            const std::int64_t i = begin + r * kThreads + threadIdx.x;
            if (i < n) out[i] = words[r];
        }
    }
}

__device__ void copy_bytes(const std::byte* from, std::byte* to, std::int64_t bytes) {
    const auto places = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
    std::int64_t done = 0;
    if (places % 16 == 0) {
        done = bytes / 16 * 16;
        copy_words<uint4>(from, to, bytes / 16);
    } else if (places % 4 == 0) {
        done = bytes / 4 * 4;
        copy_words<std::uint32_t>(from, to, bytes / 4);
    } else if (places % 2 == 0) {
        done = bytes / 2 * 2;
        copy_words<std::uint16_t>(from, to, bytes / 2);
    }
    copy_words<std::uint8_t>(from + done, to + done, bytes - done);
}

// What a block moves: [begin, end) of a piece, of which the component has only the bytes before `held`.
struct Share {
    const Component& component;
    std::int64_t part, begin, held, end;
};

template <int kMost>
__device__ Share share_of_block(const Table<kMost>& table, int entries) {
    const std::int64_t block = blockIdx.x;
    const Entry& entry = entry_of(table, entries, block);
    const Component& component = entry.component;
    const std::int64_t part = (block - entry.first_block) / entry.chunks;
    const std::int64_t begin = (block - entry.first_block) % entry.chunks * kChunk;
    const std::int64_t end = begin + kChunk < component.piece ? begin + kChunk : component.piece;
    const std::int64_t left = component.bytes - part * component.piece;
    return {component, part, begin, left < begin ? begin : (left < end ? left : end), end};
}

template <int kMost>
__global__ void __launch_bounds__(kThreads)
    move_kernel(std::byte* whole, std::int64_t part_bytes,
                const __grid_constant__ GridConstant<Table<kMost>> table, int entries, bool gather) {
    const Share share = share_of_block<kMost>(table, entries);
    const std::int64_t begin = share.begin, held = share.held;
    std::byte* in_part = whole + share.part * part_bytes + share.component.first;
    std::byte* in_piece = share.component.data + share.part * share.component.piece;
    if (!gather) {
        if (held > begin) copy_bytes(in_part + begin, in_piece + begin, held - begin);
        return;
    }
    if (held > begin) copy_bytes(in_piece + begin, in_part + begin, held - begin);
    for (std::int64_t i = held + threadIdx.x; i < share.end; i += kThreads) in_part[i] = std::byte{0};
}

template <class From, class To, int kMost>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(To* whole, std::int64_t part_elements,
                   const __grid_constant__ GridConstant<Table<kMost>> table, int entries) {
    const Share share = share_of_block<kMost>(table, entries);
    To* in_part = whole + share.part * part_elements + share.component.first;
    const From* in_piece =
        reinterpret_cast<const From*>(share.component.data) + share.part * share.component.piece;
    for (std::int64_t i = share.begin + threadIdx.x; i < share.end; i += kThreads) {
        in_part[i] = rounded<To>(i < share.held ? to_float(in_piece[i]) : 0.0f);
    }
}

// Calls launch_table(table, blocks, entries) once for these components.
template <int kMost, class Launch>
void with_table(std::int64_t parts, const Component* components, std::size_t count, Launch launch_table) {
    Table<kMost> table;
    int entries = 0;
    std::int64_t blocks = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t chunks = (components[i].piece + kChunk - 1) / kChunk;
        if (chunks == 0) continue;
        table.at[entries++] = {components[i], chunks, blocks};
        blocks += parts * chunks;
    }
    launch_table(table, static_cast<unsigned>(blocks), entries);
}

// The same, in as many launches as the components need.
template <class Launch>
void with_tables(std::int64_t parts, const std::vector<Component>& components, Launch launch_table) {
    if (components.size() <= kFew) {
        return with_table<kFew>(parts, components.data(), components.size(), launch_table);
    }
    for (std::size_t first = 0; first < components.size(); first += kMany) {
        with_table<kMany>(parts, components.data() + first,
                          std::min<std::size_t>(kMany, components.size() - first), launch_table);
    }
}

}  // namespace

void move_pieces(const DeviceContext& device, std::byte* whole, std::int64_t parts, std::int64_t part_bytes,
                 const std::vector<Component>& components, bool gather) {
    with_tables(parts, components, [&]<int kMost>(const Table<kMost>& table, unsigned blocks, int entries) {
        launch(&move_kernel<kMost>, blocks, kThreads, 0, device.stream, whole, part_bytes, table, entries,
               gather);
    });
}

template <class From, class To>
void convert_pieces(const DeviceContext& device, To* whole, std::int64_t parts, std::int64_t part_elements,
                    const std::vector<Component>& components) {
    with_tables(parts, components, [&]<int kMost>(const Table<kMost>& table, unsigned blocks, int entries) {
        launch(&convert_kernel<From, To, kMost>, blocks, kThreads, 0, device.stream, whole, part_elements,
               table, entries);
    });
}
template void convert_pieces<float, Bf16>(const DeviceContext&, Bf16*, std::int64_t, std::int64_t,
                                          const std::vector<Component>&);
template void convert_pieces<float, Fp16>(const DeviceContext&, Fp16*, std::int64_t, std::int64_t,
                                          const std::vector<Component>&);
template void convert_pieces<Bf16, float>(const DeviceContext&, float*, std::int64_t, std::int64_t,
                                          const std::vector<Component>&);
template void convert_pieces<Fp16, float>(const DeviceContext&, float*, std::int64_t, std::int64_t,
                                          const std::vector<Component>&);

}  // namespace shardscope::trainer::cuda
