// See optimizer.h. One kernel steps the ranges for every optimizer: a block handles one chunk of one range,
// each thread four elements of all arrays at a time. The table of ranges travels as a kernel argument (see
// copies.cu). Compiled without contraction to FMA, for the CPU's bits.
#include <algorithm>
#include <cmath>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/optimizer.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kCount = 4;               // floats in 16 bytes
constexpr std::int64_t kChunk = 4096;   // elements per block: 4 rounds
constexpr int kFew = 32, kMany = 1000;  // ranges per launch: 1 and 32 KiB of arguments

struct Entry {
    std::int64_t begin, end;
    std::int32_t segment;
    std::uint32_t adapted;
    std::int64_t first_block;
};

template <int kMost>
struct Table {
    Entry at[kMost];
};

template <int kArrays>
struct Arrays {
    float* at[kArrays];
};

// Chunks begin at multiples of kChunk in the slot, not where the range begins, so that packs stay aligned.
__host__ __device__ inline std::int64_t chunk_of(std::int64_t element) {
    return element / kChunk;
}

// Step: kArrays, kWritten (a bit for each array that changes), kSquares (whether the squares of the norms of
// the first two are wanted), look(norms, entry) once per thread, and operator()(values), which changes the
// values of one element.
template <class Step, int kMost>
__global__ void __launch_bounds__(kThreads)
    step_kernel(const __grid_constant__ GridConstant<Table<kMost>> table, int entries,
                Arrays<Step::kArrays> arrays, Step step, const double* norms, double* parts, bool packed) {
    const Entry& entry = entry_of(table, entries, blockIdx.x);
    const std::int64_t chunk = chunk_of(entry.begin) + (blockIdx.x - entry.first_block);
    const std::int64_t begin = chunk * kChunk > entry.begin ? chunk * kChunk : entry.begin;
    const std::int64_t end = (chunk + 1) * kChunk < entry.end ? (chunk + 1) * kChunk : entry.end;
    step.look(norms, entry);
    [[maybe_unused]] double first_square = 0.0, second_square = 0.0;
    for (std::int64_t first = chunk * kChunk + threadIdx.x * kCount; first < end;
         first += kThreads * kCount) {
        if (first + kCount <= begin) continue;
        const bool whole = packed && first >= begin && first + kCount <= end;
        float values[Step::kArrays][kCount];
#pragma unroll
        for (int a = 0; a < Step::kArrays; ++a) {
            if (whole) {
                load_floats(arrays.at[a] + first, values[a]);
            } else {
#pragma unroll
                for (int i = 0; i < kCount; ++i) {
                    const std::int64_t at = first + i;
                    values[a][i] = at >= begin && at < end ? arrays.at[a][at] : 0.0f;
                }
            }
        }
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            float element[Step::kArrays];
#pragma unroll
            for (int a = 0; a < Step::kArrays; ++a) element[a] = values[a][i];
            step(element);
            if constexpr (Step::kSquares) {
                if (whole || (first + i >= begin && first + i < end)) {
                    first_square += static_cast<double>(element[0]) * static_cast<double>(element[0]);
                    second_square += static_cast<double>(element[1]) * static_cast<double>(element[1]);
                }
            }
#pragma unroll
            for (int a = 0; a < Step::kArrays; ++a) values[a][i] = element[a];
        }
#pragma unroll
        for (int a = 0; a < Step::kArrays; ++a) {
            if ((Step::kWritten >> a & 1u) == 0) continue;
            if (whole) {
                store_floats(arrays.at[a] + first, values[a]);
            } else {
#pragma unroll
                for (int i = 0; i < kCount; ++i) {
                    const std::int64_t at = first + i;
                    if (at >= begin && at < end) arrays.at[a][at] = values[a][i];
                }
            }
        }
    }
    if constexpr (Step::kSquares) {
        first_square = block_sum(first_square);
        second_square = block_sum(second_square);
        if (threadIdx.x == 0) {
            parts[2 * blockIdx.x] = first_square;
            parts[2 * blockIdx.x + 1] = second_square;
        }
    }
}

// Adds up the parts of each range's blocks, with one block per range.
template <int kMost>
__global__ void __launch_bounds__(kThreads)
    norms_kernel(const __grid_constant__ GridConstant<Table<kMost>> table, int entries, std::int64_t blocks,
                 const double* parts, double* norms) {
    const Entry& entry = table.at[blockIdx.x];
    const std::int64_t end =
        static_cast<int>(blockIdx.x) + 1 < entries ? table.at[blockIdx.x + 1].first_block : blocks;
    double first_square = 0.0, second_square = 0.0;
    for (std::int64_t i = entry.first_block + threadIdx.x; i < end; i += kThreads) {
        first_square += parts[2 * i];
        second_square += parts[2 * i + 1];
    }
    first_square = block_sum(first_square);
    second_square = block_sum(second_square);
    if (threadIdx.x == 0) {
        norms[2 * entry.segment] = first_square;
        norms[2 * entry.segment + 1] = second_square;
    }
}

template <int kMost, class Step>
void step_some(const DeviceContext& device, const Range* ranges, std::size_t count,
               const Arrays<Step::kArrays>& arrays, const Step& step, const double* norms, double* squares) {
    Table<kMost> table;
    std::int64_t blocks = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const Range& range = ranges[i];
        table.at[i] = {range.begin, range.end, range.segment, range.adapted ? 1u : 0u, blocks};
        blocks += chunk_of(range.end - 1) - chunk_of(range.begin) + 1;
    }
    const auto entries = static_cast<int>(count);
    double* parts =
        Step::kSquares ? device.workspace.take_of<double>(2 * static_cast<std::size_t>(blocks)) : nullptr;
    const bool packed = std::all_of(std::begin(arrays.at), std::end(arrays.at), is_aligned);
    launch(&step_kernel<Step, kMost>, static_cast<unsigned>(blocks), kThreads, 0, device.stream, table,
           entries, arrays, step, norms, parts, packed);
    if (Step::kSquares) {
        launch(&norms_kernel<kMost>, static_cast<unsigned>(count), kThreads, 0, device.stream, table, entries,
               blocks, parts, squares);
    }
}

// The step reads `norms`; `squares` receives the squares of the norms. No range is empty.
template <class Step>
void step_ranges(const DeviceContext& device, const std::vector<Range>& ranges,
                 const Arrays<Step::kArrays>& arrays, const Step& step, const double* norms = nullptr,
                 double* squares = nullptr) {
    if (ranges.size() <= kFew) {
        return step_some<kFew>(device, ranges.data(), ranges.size(), arrays, step, norms, squares);
    }
    for (std::size_t first = 0; first < ranges.size(); first += kMany) {
        step_some<kMany>(device, ranges.data() + first, std::min<std::size_t>(kMany, ranges.size() - first),
                         arrays, step, norms, squares);
    }
}

// Joins adjacent ranges, for steps that treat all elements alike.
std::vector<Range> joined(const std::vector<Range>& ranges) {
    std::vector<Range> made;
    for (const Range& range : ranges) {
        if (!made.empty() && made.back().end == range.begin) {
            made.back().end = range.end;
        } else {
            made.push_back(range);
        }
    }
    return made;
}

struct LooksAtNothing {
    __device__ void look(const double*, const Entry&) {}
};

// --- sgd and lars: arrays param, grad[, buffer] ------------------------------------------------------------

template <bool kBuffer>
struct Momentum {
    static constexpr int kArrays = kBuffer ? 3 : 2;
    static constexpr unsigned kWritten = kBuffer ? 0b101u : 0b001u;
    static constexpr bool kSquares = false;
    float rate, keep;
    bool nesterov;

    __device__ void step(float (&x)[kArrays], float g) const {
        if constexpr (!kBuffer) {
            x[0] -= rate * g;
        } else {
            x[2] = keep * x[2] + g;
            x[0] -= rate * (nesterov ? g + keep * x[2] : x[2]);
        }
    }
};

template <bool kBuffer>
struct Sgd : Momentum<kBuffer>, LooksAtNothing {
    float decay;
    __device__ void operator()(float (&x)[Momentum<kBuffer>::kArrays]) const {
        this->step(x, x[1] + decay * x[0]);
    }
};

// The rate is trust times the parameter's norm over its gradient's, with the same bits as lars_rate.
template <bool kBuffer>
struct Lars : Momentum<kBuffer> {
    float decay;
    double weight_decay, trust;
    float adaption = 1.0f;
    __device__ void look(const double* norms, const Entry& entry) {
        const double param_square = norms[2 * entry.segment], grad_square = norms[2 * entry.segment + 1];
        adaption = 1.0f;
        if (entry.adapted == 0 || param_square == 0.0 || grad_square == 0.0) return;
        const double norm = sqrt(param_square);
        adaption = static_cast<float>(trust * norm / (sqrt(grad_square) + weight_decay * norm));
    }
    __device__ void operator()(float (&x)[Momentum<kBuffer>::kArrays]) const {
        this->step(x, adaption * (x[1] + decay * x[0]));
    }
};

template <bool kBuffer>
Momentum<kBuffer> momentum_of(double lr, double momentum, bool nesterov) {
    return {static_cast<float>(lr), static_cast<float>(momentum), nesterov};
}

Arrays<2> arrays_of(float* param, const float* grad) {
    return {{param, const_cast<float*>(grad)}};  // grad is only read: see kWritten
}
Arrays<3> arrays_of(float* param, const float* grad, float* buffer) {
    return {{param, const_cast<float*>(grad), buffer}};
}

// --- adam, adamw, lamb -------------------------------------------------------------------------------------

// Factors that do not depend on the element, computed in double on the host.
struct AdamFactors {
    float fresh1, fresh2, decay2, root2, floor;

    explicit AdamFactors(const AdamSettings& s)
        : fresh1(static_cast<float>(1.0 - s.beta1)),
          fresh2(static_cast<float>(1.0 - s.beta2)),
          decay2(static_cast<float>(s.beta2)),
          root2(static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, static_cast<double>(s.step))))),
          floor(static_cast<float>(s.eps)) {}

    // m / (sqrt(vhat) + eps), after m and v are updated with g.
    __device__ float direction(float g, float& m, float& v) const {
        const float first = m + fresh1 * (g - m);
        const float second = decay2 * v + fresh2 * (g * g);
        m = first;
        v = second;
        return first / (sqrtf(second) * root2 + floor);
    }
};

double correction1(const AdamSettings& s) {
    return 1.0 - std::pow(s.beta1, static_cast<double>(s.step));
}

// param, grad, m, v
template <bool kDecoupled>
struct Adam : LooksAtNothing {
    static constexpr int kArrays = 4;
    static constexpr unsigned kWritten = 0b1101u;
    static constexpr bool kSquares = false;
    AdamFactors factors;
    float decay, step_size;  // decay of kDecoupled: the factor that shrinks the parameter

    explicit Adam(const AdamSettings& s)
        : factors(s),
          decay(static_cast<float>(kDecoupled ? 1.0 - s.lr * s.weight_decay : s.weight_decay)),
          step_size(static_cast<float>(s.lr / correction1(s))) {}
    __device__ void operator()(float (&x)[kArrays]) const {
        if constexpr (kDecoupled) {
            x[0] = x[0] * decay - step_size * factors.direction(x[1], x[2], x[3]);
        } else {
            x[0] -= step_size * factors.direction(x[1] + decay * x[0], x[2], x[3]);
        }
    }
};

// param, grad, m, v: the gradient becomes the update.
struct LambUpdate : LooksAtNothing {
    static constexpr int kArrays = 4;
    static constexpr unsigned kWritten = 0b1110u;
    static constexpr bool kSquares = true;
    AdamFactors factors;
    float decay, share;

    explicit LambUpdate(const AdamSettings& s)
        : factors(s),
          decay(static_cast<float>(s.weight_decay)),
          share(static_cast<float>(1.0 / correction1(s))) {}
    __device__ void operator()(float (&x)[kArrays]) const {
        x[1] = share * factors.direction(x[1], x[2], x[3]) + decay * x[0];
    }
};

// param, update
struct Lamb {
    static constexpr int kArrays = 2;
    static constexpr unsigned kWritten = 0b01u;
    static constexpr bool kSquares = false;
    double lr;
    float rate = 0;

    __device__ void look(const double* norms, const Entry& entry) {
        const double param_square = norms[2 * entry.segment], update_square = norms[2 * entry.segment + 1];
        const bool alone = entry.adapted == 0 || param_square == 0.0 || update_square == 0.0;
        const float ratio = alone ? 1.0f : static_cast<float>(sqrt(param_square / update_square));
        rate = static_cast<float>(lr * static_cast<double>(ratio));
    }
    __device__ void operator()(float (&x)[kArrays]) const { x[0] -= rate * x[1]; }
};

// param, grad, m
struct NovoGrad {
    static constexpr int kArrays = 3;
    static constexpr unsigned kWritten = 0b101u;
    static constexpr bool kSquares = false;
    const float* moments;
    double eps;
    float keep, decay, rate;
    float scale = 0;

    __device__ void look(const double*, const Entry& entry) {
        scale = static_cast<float>(1.0 / (sqrt(static_cast<double>(moments[entry.segment])) + eps));
    }
    __device__ void operator()(float (&x)[kArrays]) const {
        x[2] = keep * x[2] + (scale * x[1] + decay * x[0]);
        x[0] -= rate * x[2];
    }
};

__global__ void moments_kernel(float* moments, const double* norms, std::size_t count, double beta2,
                               bool first) {
    const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= count) return;
    const double square = norms[2 * i + 1];
    moments[i] =
        static_cast<float>(first ? square : beta2 * static_cast<double>(moments[i]) + (1.0 - beta2) * square);
}

struct SquaresAlone : LooksAtNothing {
    static constexpr int kArrays = 2;
    static constexpr unsigned kWritten = 0;
    static constexpr bool kSquares = true;
    __device__ void operator()(float (&)[kArrays]) const {}
};

void clear(const DeviceContext& device, double* norms, std::size_t segments) {
    check(cudaMemsetAsync(norms, 0, 2 * segments * sizeof(double), device.stream),
          "cudaMemsetAsync of norms");
}

}  // namespace

void sgd(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
         float* buffer, double lr, double momentum, bool nesterov, double weight_decay) {
    const auto decay = static_cast<float>(weight_decay);
    if (buffer) {
        const Sgd<true> step{momentum_of<true>(lr, momentum, nesterov), {}, decay};
        step_ranges(device, joined(ranges), arrays_of(param, grad, buffer), step);
    } else {
        const Sgd<false> step{momentum_of<false>(lr, momentum, nesterov), {}, decay};
        step_ranges(device, joined(ranges), arrays_of(param, grad), step);
    }
}

void adam(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
          float* m, float* v, const AdamSettings& settings, bool decoupled) {
    const Arrays<4> arrays{{param, const_cast<float*>(grad), m, v}};
    if (decoupled) {
        step_ranges(device, joined(ranges), arrays, Adam<true>(settings));
    } else {
        step_ranges(device, joined(ranges), arrays, Adam<false>(settings));
    }
}

void squared_norms(const DeviceContext& device, const std::vector<Range>& ranges, double* norms,
                   std::size_t segments, const float* left, const float* right) {
    clear(device, norms, segments);
    step_ranges(device, ranges, arrays_of(const_cast<float*>(left), right), SquaresAlone{}, nullptr, norms);
}

void lars(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
          float* buffer, const double* norms, double lr, double momentum, bool nesterov, double weight_decay,
          double trust) {
    const auto decay = static_cast<float>(weight_decay);
    if (buffer) {
        const Lars<true> step{momentum_of<true>(lr, momentum, nesterov), decay, weight_decay, trust};
        step_ranges(device, ranges, arrays_of(param, grad, buffer), step, norms);
    } else {
        const Lars<false> step{momentum_of<false>(lr, momentum, nesterov), decay, weight_decay, trust};
        step_ranges(device, ranges, arrays_of(param, grad), step, norms);
    }
}

void lamb_update(const DeviceContext& device, const std::vector<Range>& ranges, double* norms,
                 std::size_t segments, float* grad, const float* param, float* m, float* v,
                 const AdamSettings& settings) {
    clear(device, norms, segments);
    const Arrays<4> arrays{{const_cast<float*>(param), grad, m, v}};
    step_ranges(device, ranges, arrays, LambUpdate(settings), nullptr, norms);
}

void lamb(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* update,
          const double* norms, double lr) {
    step_ranges(device, ranges, arrays_of(param, update), Lamb{lr}, norms);
}

void novograd_moments(const DeviceContext& device, float* moments, const double* norms, std::size_t count,
                      double beta2, std::int64_t step) {
    const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    launch(&moments_kernel, blocks, kThreads, 0, device.stream, moments, norms, count, beta2, step == 1);
}

void novograd(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
              float* m, const float* moments, const AdamSettings& settings) {
    const NovoGrad step{moments, settings.eps, static_cast<float>(settings.beta1),
                        static_cast<float>(settings.weight_decay), static_cast<float>(settings.lr)};
    step_ranges(device, ranges, arrays_of(param, grad, m), step);
}

}  // namespace shardscope::trainer::cuda
