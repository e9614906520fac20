#include "trainer/executor/cpu_onebit.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/kernels/compression.h"
#include "trainer/kernels/optimizer.h"

namespace shardscope::trainer::executor {
namespace {

namespace k = kernels;

// An operation's segments, args and scalars.
class Onebit {
  public:
    Onebit(const plan::KernelOp& own, const std::vector<std::byte*>& data,
           const device::KernelContext& context)
        : own_(own), data_(data), context_(context) {}

    void run() const {
        switch (own_.kernel) {
            case plan::Kernel::compress_signs:
                return compress();
            case plan::Kernel::average_signs:
                return average();
            case plan::Kernel::expand_signs:
                return expand();
            case plan::Kernel::onebit_lamb_averages:
                return average_ratios();
            default:
                return step();
        }
    }

  private:
    float* f(std::size_t arg) const { return reinterpret_cast<float*>(data_[arg]); }
    std::uint32_t* words(std::size_t arg) const { return reinterpret_cast<std::uint32_t*>(data_[arg]); }
    std::size_t segments() const { return context_.segments.size(); }

    // Calls visit(segment's index, first element of the sequence, its place in the part, elements) for what
    // the part that begins at `begin` has of each segment.
    template <class Visit>
    void for_parts(std::int64_t begin, std::int64_t elements, const Visit& visit) const {
        const device::Held held{begin, begin + elements};
        for (std::size_t s = 0; s < segments(); ++s) {
            const device::Held part = held.part(context_.segments[s].first, context_.segments[s].elements);
            if (part.count() > 0) {
                visit(s, static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.begin - begin),
                      part.count());
            }
        }
    }
    // Of dims elements, elements per rank.
    template <class Visit>
    void for_held(const Visit& visit) const {
        for_parts(own_.dims[1] > 0 ? context_.data_rank * own_.dims[1] : 0, own_.dims[0], visit);
    }

    void compress() const {
        std::fill_n(f(1), segments(), 0.0f);
        for_held([&](std::size_t s, std::size_t first, std::size_t at, std::size_t n) {
            f(1)[s] = k::compress_signs(f(2) + at, f(3) + at, f(4) + first, n, words(0), at);
        });
    }
    void average() const {
        const auto ranks = static_cast<std::size_t>(own_.dims[2]);
        const std::size_t each = static_cast<std::size_t>(own_.dims[0]) / 32;  // words of a rank
        for_held([&](std::size_t s, std::size_t, std::size_t at, std::size_t n) {
            std::fill_n(f(0) + at, n, 0.0f);
            for (std::size_t r = 0; r < ranks; ++r) {
                k::add_signs(words(1) + r * each, at,
                             f(2)[r * segments() + s] / static_cast<float>(own_.dims[2]), f(0) + at, n);
            }
        });
    }
    void expand() const {
        const std::int64_t each = own_.dims[1];
        for (std::int64_t r = 0; r < own_.dims[2]; ++r) {
            for_parts(r * each, each, [&](std::size_t s, std::size_t first, std::size_t at, std::size_t n) {
                k::expand_signs(words(1) + r * each / 32, at,
                                f(2)[static_cast<std::size_t>(r) * segments() + s], f(3) + first,
                                f(0) + first, n);
            });
        }
    }
    void average_ratios() const {
        const auto* norms = reinterpret_cast<const double*>(data_[1]);
        for (std::int64_t i = 0; i < own_.dims[0]; ++i)
            f(0)[i] = k::onebit_lamb_average(f(0)[i], k::lamb_ratio(norms[2 * i], norms[2 * i + 1]));
    }
    void step() const {
        const auto& s = own_.scalars;
        const std::int64_t step = context_.updates + 1, frozen = static_cast<std::int64_t>(s[4]);
        const k::AdamOptions options{context_.lr, s[0], s[1], s[2], s[3]};
        for_held([&](std::size_t segment, std::size_t, std::size_t at, std::size_t n) {
            switch (own_.kernel) {
                case plan::Kernel::onebit_freeze:
                    return k::onebit_freeze(f(0) + at, n);
                case plan::Kernel::onebit_momentum:
                    return k::onebit_momentum(f(0) + at, f(1) + at, f(2) + at, n, s[0], s[1]);
                case plan::Kernel::onebit_adam:
                    return k::onebit_adam(f(0) + at, f(1) + at, f(2) + at, n, options, step, frozen);
                case plan::Kernel::onebit_lamb:
                    return k::onebit_lamb(
                        f(0) + at, f(1) + at, f(2) + at, f(3) + at, f(4) + at, n, options, step, frozen,
                        context_.segments[segment].adapted ? f(5)[segment] : -1.0f, f(6)[segment]);
                default:
                    throw std::logic_error("a Plan names a kernel that is not a 1-bit optimizer's");
            }
        });
    }

    const plan::KernelOp& own_;
    const std::vector<std::byte*>& data_;
    const device::KernelContext& context_;
};

}  // namespace

void run_onebit(const plan::Op& op, const std::vector<std::byte*>& data,
                const device::KernelContext& context) {
    Onebit(op.kernel(), data, context).run();
}

}  // namespace shardscope::trainer::executor
