// See embedding.h. The backward sorts the rows by their entry, stably (radix sort: Knuth, The Art of Computer
// Programming 3, 5.2.5), with one pass per 8 bits of the largest entry. Then it adds each entry's rows; if
// there are many, in pieces that are spread over blocks. Both take time linear in the rows, however often an
// entry occurs, and sums are in the order of the rows.
#include <utility>

#include "trainer/cuda/embedding.h"
#include "trainer/cuda/rows.h"
#include "trainer/kernels/embedding.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kScanThreads = 1024;
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
static_assert(kDigits == kThreads, "a thread for each digit");
constexpr int kTile = 16 * kThreads;  // rows that a block sorts
constexpr int kPiece = kernels::kRowsOfPiece;

// y[row] = table[entry(row)] (+ x[row]), one block per row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    look_up_kernel(const std::int32_t* tokens, int context, int first_row, const T* x, const T* table, T* y,
                   int width, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t row = std::size_t{blockIdx.x} * static_cast<std::size_t>(width);
    const std::size_t entry =
        tokens ? static_cast<std::size_t>(tokens[blockIdx.x])
               : (static_cast<unsigned>(first_row) + blockIdx.x) % static_cast<unsigned>(context);
    const T* from = table + entry * static_cast<std::size_t>(width);
    each_pack<0, kCount>(width, [&](int, int first) {
        float values[kCount];
        load_part(from, first, width, packed, values);
        if (x) {
            float added[kCount];
            load_part(x + row, first, width, packed, added);
#pragma unroll
            for (int i = 0; i < kCount; ++i) values[i] = added[i] + values[i];
        }
        store_part(y + row, first, width, packed, values);
    });
}

__device__ inline int digit_of(std::int32_t token, int shift) {
    return token >> shift & (kDigits - 1);
}

// counts[d * tiles + t]: the number of rows of tile t that have digit d.
__global__ void __launch_bounds__(kThreads)
    count_kernel(const std::int32_t* tokens, int rows, int shift, std::int32_t* counts) {
    __shared__ std::int32_t of_digit[kDigits];
    const int thread = static_cast<int>(threadIdx.x), tile = static_cast<int>(blockIdx.x);
    of_digit[thread] = 0;
    __syncthreads();
    const int begin = tile * kTile, end = min(begin + kTile, rows);
    for (int i = begin + thread; i < end; i += kThreads) {
        atomicAdd(of_digit + digit_of(tokens[i], shift), 1);
    }
    __syncthreads();
    counts[thread * static_cast<int>(gridDim.x) + tile] = of_digit[thread];
}

// counts[e] becomes the sum of the counts before it; counts[entries], the sum of all. One block: each thread
// sums a run of entries, the sums of the runs are scanned, then each thread writes the entries of its run.
__global__ void __launch_bounds__(kScanThreads) scan_kernel(std::int32_t* counts, int entries) {
    __shared__ std::int32_t of_warps[kWarpLanes];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarpLanes, warp = thread / kWarpLanes;
    const int run = (entries + kScanThreads - 1) / kScanThreads;
    const int begin = min(thread * run, entries), end = min(begin + run, entries);
    std::int32_t sum = 0;
    for (int e = begin; e < end; ++e) sum += counts[e];
    const auto scanned = [lane](std::int32_t value) {  // `value` plus the values of all lower lanes
#pragma unroll
        for (unsigned lanes = 1; lanes < kWarpLanes; lanes *= 2) {
            const std::int32_t before = __shfl_up_sync(kAllLanes, value, lanes);
            if (lane >= static_cast<int>(lanes)) value += before;
        }
        return value;
    };
    const std::int32_t in_warp = scanned(sum);
    if (lane == kWarpLanes - 1) of_warps[warp] = in_warp;
    __syncthreads();
    const std::int32_t of_warp = scanned(of_warps[lane]);
    const std::int32_t warps_before = __shfl_sync(kAllLanes, of_warp, warp) - of_warps[warp];
    std::int32_t start = warps_before + in_warp - sum;
    for (int e = begin; e < end; ++e) {
        const std::int32_t count = counts[e];
        counts[e] = start;
        start += count;
    }
    if (thread == kScanThreads - 1) counts[entries] = start;
}

// Sorts tokens and the numbers of their rows (`order`; null: 0, 1, ...) stably by their digit. `starts`: the
// scanned counts. Rows are taken in rounds of kThreads: a row goes after the rows of earlier rounds of the
// tile, of earlier warps of the round and of earlier lanes of the warp.
__global__ void __launch_bounds__(kThreads)
    sort_kernel(const std::int32_t* tokens, const std::int32_t* order, int rows, int shift,
                const std::int32_t* starts, std::int32_t* sorted_tokens, std::int32_t* sorted_order) {
    __shared__ std::int32_t next[kDigits];  // where the next row of each digit goes
    __shared__ std::int32_t of_warps[kThreads / kWarpLanes][kDigits];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarpLanes, warp = thread / kWarpLanes;
    const int tile = static_cast<int>(blockIdx.x);
    const int begin = tile * kTile, end = min(begin + kTile, rows);
    next[thread] = starts[thread * static_cast<int>(gridDim.x) + tile];
    for (int first = begin; first < end; first += kThreads) {
        for (auto& counts : of_warps) counts[thread] = 0;
        __syncthreads();
        const int i = first + thread;
        const std::int32_t token = i < end ? tokens[i] : 0;
        const int digit = digit_of(token, shift);
        unsigned same = __ballot_sync(kAllLanes, i < end);  // lanes with this digit
#pragma unroll
        for (int bit = 0; bit < kDigitBits; ++bit) {
            const unsigned set = __ballot_sync(kAllLanes, digit >> bit & 1);
            same &= (digit >> bit & 1) != 0 ? set : ~set;
        }
        const int before = __popc(same & ((1U << lane) - 1));
        if (i < end && before == 0) of_warps[warp][digit] = __popc(same);
        __syncthreads();
        std::int32_t place = next[thread];  // for this thread's digit
        for (auto& counts : of_warps) {
            const std::int32_t count = counts[thread];
            counts[thread] = place;
            place += count;
        }
        next[thread] = place;
        __syncthreads();
        if (i < end) {
            const std::int32_t to = of_warps[warp][digit] + before;
            sorted_tokens[to] = token;
            sorted_order[to] = order ? order[i] : i;
        }
        __syncthreads();
    }
}

// starts[e]: the first sorted row whose token is e or larger; starts[entries] = rows.
__global__ void __launch_bounds__(kThreads)
    starts_kernel(const std::int32_t* sorted_tokens, int rows, int entries, std::int32_t* starts) {
    const int e = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (e > entries) return;
    int low = 0, high = rows;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (sorted_tokens[middle] < e) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    starts[e] = low;
}

// The rows that are summed: the k-th is row_of(k).
struct SortedRows {
    const std::int32_t* order;
    __device__ int row_of(int k) const { return order[k]; }
};
struct EachRow {
    __device__ int row_of(int k) const { return k; }
};

// sums = dy of rows begin, begin + step, ... before end, at elements [first, first + kCount).
template <class T, int kCount, class Rows>
__device__ inline void add_rows(const T* dy, int width, bool packed, const Rows& rows, int begin, int end,
                                int step, int first, float (&sums)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = 0;
#pragma unroll 4
    for (int k = begin; k < end; k += step) {
        float values[kCount];
        load_part(dy + static_cast<std::size_t>(rows.row_of(k)) * static_cast<std::size_t>(width), first,
                  width, packed, values);
#pragma unroll
        for (int i = 0; i < kCount; ++i) sums[i] += values[i];
    }
}

// The place of the sum of the piece that begins at the sorted row `begin`, for an entry whose rows begin at
// `start`. At most two pieces begin in a window of kPiece rows: one of an entry that began before or with the
// window, and one of an entry that begins within it and goes beyond it.
__device__ inline std::size_t place_of_piece(int begin, int start) {
    const int window = begin / kPiece;
    return 2 * static_cast<std::size_t>(window) + (start > window * kPiece ? 1 : 0);
}

// Sums the pieces of entries that have more rows than one piece; blocks (w, 0) and (w, 1) do the pieces that
// begin in window w.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_pieces_kernel(const T* dy, int width, const std::int32_t* sorted_tokens, const std::int32_t* order,
                      int rows, const std::int32_t* starts, float* pieces, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const int window = static_cast<int>(blockIdx.x) * kPiece;
    const bool within = blockIdx.y == 1;
    const int entry = sorted_tokens[within ? min(window + kPiece, rows) - 1 : window];
    const int start = starts[entry], stop = starts[entry + 1];
    if (stop - start <= kPiece || (start > window) != within) return;
    const int begin = within ? start : start + (window - start + kPiece - 1) / kPiece * kPiece;
    if (begin >= stop) return;
    const int end = min(begin + kPiece, stop);
    float* sum = pieces + place_of_piece(begin, start) * static_cast<std::size_t>(width);
    each_pack<0, kCount>(width, [&](int, int first) {
        float sums[kCount];
        add_rows(dy, width, packed, SortedRows{order}, begin, end, 1, first, sums);
        for (int i = 0; i < kCount && first + i < width; ++i) sum[first + i] = sums[i];
    });
}

// dtable[e] = sum of dy over its rows, one block per entry. For more than kPiece rows it adds the sums of
// their pieces, which sum_pieces_kernel has computed.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_entries_kernel(const T* dy, T* dtable, int width, const std::int32_t* starts,
                       const std::int32_t* order, const float* pieces, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const int start = starts[blockIdx.x], stop = starts[blockIdx.x + 1];
    const std::size_t n = static_cast<std::size_t>(width);
    each_pack<0, kCount>(width, [&](int, int first) {
        float sums[kCount];
        if (stop - start <= kPiece) {
            add_rows(dy, width, packed, SortedRows{order}, start, stop, 1, first, sums);
        } else {
            for (int i = 0; i < kCount; ++i) sums[i] = 0;
            for (int begin = start; begin < stop; begin += kPiece) {
                const float* sum = pieces + place_of_piece(begin, start) * n;
                for (int i = 0; i < kCount && first + i < width; ++i) sums[i] += sum[first + i];
            }
        }
        store_part(dtable + std::size_t{blockIdx.x} * n, first, width, packed, sums);
    });
}

// dtable[e] = sum of dy over rows e, e + context, ..., one block per entry, piece by piece.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_positions_kernel(const T* dy, T* dtable, int width, int rows,
                                                                 int context, int first_row, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const auto entry = static_cast<int>(blockIdx.x);
    const std::int64_t stop = entry < context ? rows : 0;
    const std::int64_t piece = std::int64_t{kPiece} * context;
    const int start = (entry % context + context - first_row % context) % context;
    each_pack<0, kCount>(width, [&](int, int first) {
        float sums[kCount] = {};
        for (std::int64_t begin = start; begin < stop; begin += piece) {
            float of_piece[kCount];
            const auto end = static_cast<int>(begin + piece < stop ? begin + piece : stop);
            add_rows(dy, width, packed, EachRow{}, static_cast<int>(begin), end, context, first, of_piece);
#pragma unroll
            for (int i = 0; i < kCount; ++i) sums[i] += of_piece[i];
        }
        store_part(dtable + std::size_t{blockIdx.x} * static_cast<std::size_t>(width), first, width, packed,
                   sums);
    });
}

template <class T>
unsigned threads_of_row(int width) {
    return threads_for(static_cast<std::size_t>((width + kPackOf<T> - 1) / kPackOf<T>), kThreads);
}

template <class T>
void look_up(const DeviceContext& device, const std::int32_t* tokens, int context, int first, const T* x,
             const T* table, T* y, int rows, int width) {
    const bool packed = width % kPackOf<T> == 0 && is_aligned(x) && is_aligned(table) && is_aligned(y);
    launch(&look_up_kernel<T>, static_cast<unsigned>(rows), threads_of_row<T>(width), 0, device.stream,
           tokens, context, first, x, table, y, width, packed);
}

// The backward's arrays, taken from device.workspace.
struct Sorting {
    std::int32_t *counts, *starts;
    std::int32_t *tokens[2], *order[2];  // two of each: a pass reads the previous pass's output
    float* pieces;
};

Sorting take_workspace(const DeviceContext& device, std::size_t rows, std::size_t entries, std::size_t tiles,
                       std::size_t width) {
    const std::size_t counts = kDigits * tiles + 1, starts = entries + 1;
    const std::size_t pieces = 2 * ((rows + kPiece - 1) / kPiece) * width;
    auto* memory = device.workspace.take_of<std::int32_t>(counts + starts + 4 * rows + pieces);
    Sorting s{};
    s.counts = memory;
    s.starts = s.counts + counts;
    s.tokens[0] = s.starts + starts;
    s.tokens[1] = s.tokens[0] + rows;
    s.order[0] = s.tokens[1] + rows;
    s.order[1] = s.order[0] + rows;
    s.pieces = reinterpret_cast<float*>(s.order[1] + rows);
    return s;
}

}  // namespace

template <class T>
void embedding_forward(const DeviceContext& device, const std::int32_t* tokens, const T* table, T* y,
                       int rows, int width) {
    look_up<T>(device, tokens, 1, 0, nullptr, table, y, rows, width);
}

template <class T>
void embedding_backward(const DeviceContext& device, const T* dy, const std::int32_t* tokens, T* dtable,
                        int rows, int entries, int width) {
    const auto n = static_cast<std::size_t>(rows), e = static_cast<std::size_t>(entries);
    const unsigned tiles = blocks_for(n, kTile), windows = blocks_for(n, kPiece);
    Sorting s = take_workspace(device, n, e, tiles, static_cast<std::size_t>(width));
    const std::int32_t *from_tokens = tokens, *from_order = nullptr;
    for (int shift = 0; shift == 0 || (entries - 1) >> shift > 0; shift += kDigitBits) {
        launch(&count_kernel, tiles, kThreads, 0, device.stream, from_tokens, rows, shift, s.counts);
        launch(&scan_kernel, 1, kScanThreads, 0, device.stream, s.counts, static_cast<int>(kDigits * tiles));
        launch(&sort_kernel, tiles, kThreads, 0, device.stream, from_tokens, from_order, rows, shift,
               s.counts, s.tokens[0], s.order[0]);
        from_tokens = s.tokens[0];
        from_order = s.order[0];
        std::swap(s.tokens[0], s.tokens[1]);
        std::swap(s.order[0], s.order[1]);
    }
    launch(&starts_kernel, blocks_for(e + 1, kThreads), kThreads, 0, device.stream, from_tokens, rows,
           entries, s.starts);
    const bool packed = width % kPackOf<T> == 0 && is_aligned(dy) && is_aligned(dtable);
    const unsigned threads = threads_of_row<T>(width);
    if (rows > kPiece) {
        launch(&sum_pieces_kernel<T>, dim3(windows, 2), threads, 0, device.stream, dy, width, from_tokens,
               from_order, rows, s.starts, s.pieces, packed);
    }
    launch(&sum_entries_kernel<T>, static_cast<unsigned>(entries), threads, 0, device.stream, dy, dtable,
           width, s.starts, from_order, s.pieces, packed);
}

template <class T>
void position_forward(const DeviceContext& device, const T* x, const T* table, T* y, int rows, int context,
                      int width, int first) {
    look_up<T>(device, nullptr, context, first, x, table, y, rows, width);
}

template <class T>
void position_backward(const DeviceContext& device, const T* dy, T* dtable, int rows, int context,
                       int entries, int width, int first) {
    const bool packed = width % kPackOf<T> == 0 && is_aligned(dy) && is_aligned(dtable);
    launch(&sum_positions_kernel<T>, static_cast<unsigned>(entries), threads_of_row<T>(width), 0,
           device.stream, dy, dtable, width, rows, context, first, packed);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                       \
    template void embedding_forward(const DeviceContext&, const std::int32_t*, const T*, T*, int, int); \
    template void embedding_backward(const DeviceContext&, const T*, const std::int32_t*, T*, int, int, \
                                     int);                                                              \
    template void position_forward(const DeviceContext&, const T*, const T*, T*, int, int, int, int);   \
    template void position_backward(const DeviceContext&, const T*, T*, int, int, int, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
