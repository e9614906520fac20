// See embedding.h. The backward finds the rows of each entry by a counting sort: atomics count and place them
// in any order, then each row's rank among its entry's makes the order the rows' own, whatever the atomics
// did.
#include "trainer/cuda/embedding.h"
#include "trainer/cuda/rows.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kScanThreads = 1024;

// y[row] = table[entry(row)] (+ x[row]), one block per row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    look_up_kernel(const std::int32_t* tokens, int context, const T* x, const T* table, T* y, int width,
                   bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t row = std::size_t{blockIdx.x} * static_cast<std::size_t>(width);
    const std::size_t entry =
        tokens ? static_cast<std::size_t>(tokens[blockIdx.x]) : blockIdx.x % static_cast<unsigned>(context);
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

// arrival[i]: how many rows of the same token came to the counter before; counts per entry.
__global__ void __launch_bounds__(kThreads)
    count_kernel(const std::int32_t* tokens, int rows, std::int32_t* counts, std::int32_t* arrival) {
    const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (i < rows) arrival[i] = atomicAdd(counts + tokens[i], 1);
}

// counts[e] becomes where the rows of entry e begin; counts[entries] = rows. One block: each thread sums a
// run of entries, the runs are scanned, each thread goes through its run again.
__global__ void __launch_bounds__(kScanThreads) scan_kernel(std::int32_t* counts, int entries) {
    __shared__ std::int32_t of_warps[kWarpLanes];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarpLanes, warp = thread / kWarpLanes;
    const int run = (entries + kScanThreads - 1) / kScanThreads;
    const int begin = min(thread * run, entries), end = min(begin + run, entries);
    std::int32_t sum = 0;
    for (int e = begin; e < end; ++e) sum += counts[e];
    const auto scanned = [lane](std::int32_t value) {  // with those of the lanes before
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

__global__ void __launch_bounds__(kThreads)
    place_kernel(const std::int32_t* tokens, int rows, const std::int32_t* starts,
                 const std::int32_t* arrival, std::int32_t* grouped) {
    const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (i < rows) grouped[starts[tokens[i]] + arrival[i]] = i;
}

// Each row's place among its entry's is the number of those before it.
__global__ void __launch_bounds__(kThreads)
    order_kernel(const std::int32_t* tokens, int rows, const std::int32_t* starts,
                 const std::int32_t* grouped, std::int32_t* ordered) {
    const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (i >= rows) return;
    const std::int32_t begin = starts[tokens[i]], end = starts[tokens[i] + 1];
    std::int32_t before = 0;
    for (std::int32_t k = begin; k < end; ++k) before += grouped[k] < i ? 1 : 0;
    ordered[begin + before] = i;
}

// dtable[e] = sum of dy over its rows, in order; one block per entry. By `ordered` (starts give each
// entry's), or, where that is null, the rows e, e + context, ….
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_rows_kernel(const T* dy, T* dtable, int width, const std::int32_t* starts,
                    const std::int32_t* ordered, int rows, int context, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const auto entry = static_cast<int>(blockIdx.x);
    const int begin = ordered ? starts[entry] : entry;
    const int end = ordered ? starts[entry + 1] : (entry < context ? rows : 0);
    const int step = ordered ? 1 : context;
    each_pack<0, kCount>(width, [&](int, int first) {
        float sums[kCount] = {};
#pragma unroll 4
        for (int k = begin; k < end; k += step) {
            const int row = ordered ? ordered[k] : k;
            float values[kCount];
            load_part(dy + static_cast<std::size_t>(row) * static_cast<std::size_t>(width), first, width,
                      packed, values);
#pragma unroll
            for (int i = 0; i < kCount; ++i) sums[i] += values[i];
        }
        store_part(dtable + static_cast<std::size_t>(entry) * static_cast<std::size_t>(width), first, width,
                   packed, sums);
    });
}

template <class T>
unsigned threads_of_row(int width) {
    return threads_for(static_cast<std::size_t>((width + kPackOf<T> - 1) / kPackOf<T>), kThreads);
}

template <class T>
void look_up(const DeviceContext& device, const std::int32_t* tokens, int context, const T* x, const T* table,
             T* y, int rows, int width) {
    const bool packed = width % kPackOf<T> == 0 && is_aligned(x) && is_aligned(table) && is_aligned(y);
    launch(&look_up_kernel<T>, static_cast<unsigned>(rows), threads_of_row<T>(width), 0, device.stream,
           tokens, context, x, table, y, width, packed);
}

template <class T>
void sum_rows(const DeviceContext& device, const T* dy, T* dtable, int entries, int width,
              const std::int32_t* starts, const std::int32_t* ordered, int rows, int context) {
    const bool packed = width % kPackOf<T> == 0 && is_aligned(dy) && is_aligned(dtable);
    launch(&sum_rows_kernel<T>, static_cast<unsigned>(entries), threads_of_row<T>(width), 0, device.stream,
           dy, dtable, width, starts, ordered, rows, context, packed);
}

}  // namespace

template <class T>
void embedding_forward(const DeviceContext& device, const std::int32_t* tokens, const T* table, T* y,
                       int rows, int width) {
    look_up<T>(device, tokens, 1, nullptr, table, y, rows, width);
}

template <class T>
void embedding_backward(const DeviceContext& device, const T* dy, const std::int32_t* tokens, T* dtable,
                        int rows, int entries, int width) {
    const auto n = static_cast<std::size_t>(rows), e = static_cast<std::size_t>(entries);
    auto* starts = device.workspace.take_of<std::int32_t>(e + 1 + 3 * n);
    std::int32_t *arrival = starts + e + 1, *grouped = arrival + n, *ordered = grouped + n;
    check(cudaMemsetAsync(starts, 0, e * sizeof(std::int32_t), device.stream),
          "cudaMemsetAsync of an embedding's counts");
    const unsigned blocks = blocks_for(n, kThreads);
    launch(&count_kernel, blocks, kThreads, 0, device.stream, tokens, rows, starts, arrival);
    launch(&scan_kernel, 1, kScanThreads, 0, device.stream, starts, entries);
    launch(&place_kernel, blocks, kThreads, 0, device.stream, tokens, rows, starts, arrival, grouped);
    launch(&order_kernel, blocks, kThreads, 0, device.stream, tokens, rows, starts, grouped, ordered);
    sum_rows(device, dy, dtable, entries, width, starts, ordered, rows, 1);
}

template <class T>
void position_forward(const DeviceContext& device, const T* x, const T* table, T* y, int rows, int context,
                      int width) {
    look_up<T>(device, nullptr, context, x, table, y, rows, width);
}

template <class T>
void position_backward(const DeviceContext& device, const T* dy, T* dtable, int rows, int context,
                       int entries, int width) {
    sum_rows<T>(device, dy, dtable, entries, width, nullptr, nullptr, rows, context);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                       \
    template void embedding_forward(const DeviceContext&, const std::int32_t*, const T*, T*, int, int); \
    template void embedding_backward(const DeviceContext&, const T*, const std::int32_t*, T*, int, int, \
                                     int);                                                              \
    template void position_forward(const DeviceContext&, const T*, const T*, T*, int, int, int);        \
    template void position_backward(const DeviceContext&, const T*, T*, int, int, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)

}  // namespace shardscope::trainer::cuda
