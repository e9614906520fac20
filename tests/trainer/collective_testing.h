// Process groups of several ranks in one process, over wires in memory, and the expected results of their
// collectives.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "memory_wire.h"
#include "trainer/comm/collective_group.h"
#include "trainer/kernels/elements.h"

namespace shardscope::trainer::testing {

using kernels::Bf16;

template <class T>
constexpr plan::DType dtype_of() {
    return std::is_same_v<T, float>    ? plan::DType::fp32
           : std::is_same_v<T, double> ? plan::DType::fp64
                                       : plan::DType::bf16;
}
template <class T>
T from_double(double x) {
    if constexpr (std::is_same_v<T, Bf16>) {
        return kernels::to_bf16(static_cast<float>(x));
    } else {
        return static_cast<T>(x);
    }
}
inline double to_double(float x) {
    return x;
}
inline double to_double(double x) {
    return x;
}
inline double to_double(Bf16 x) {
    return kernels::to_float(x);
}

template <class T>
bool same_bits(T a, T b) {
    using Bits = std::array<std::byte, sizeof(T)>;
    return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

// Values of many magnitudes, so that the order of a sum affects its bits.
inline double value(std::uint64_t seed, int rank, std::int64_t i) {
    std::uint64_t x = (seed * 1000003U + static_cast<std::uint64_t>(rank)) * 0x9e3779b97f4a7c15U +
                      static_cast<std::uint64_t>(i) * 0xd1342543de82ef95U;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 32;
    const double mantissa = static_cast<double>(x & 0xfffff) / 0x100000 - 0.5;
    return mantissa * static_cast<double>(1U << ((x >> 40) % 12));
}

// What the members contribute: an element of each.
template <class T>
class Terms {
  public:
    Terms(std::int64_t elements, int members, std::uint64_t seed) {
        for (int rank = 0; rank < members; ++rank) {
            std::vector<T>& own = terms_.emplace_back();
            own.reserve(static_cast<std::size_t>(elements));
            for (std::int64_t i = 0; i < elements; ++i) own.push_back(from_double<T>(value(seed, rank, i)));
        }
    }
    int members() const { return static_cast<int>(terms_.size()); }
    std::int64_t elements() const { return static_cast<std::int64_t>(terms_[0].size()); }
    T of(int rank, std::int64_t i) const {
        return terms_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
    }
    // The plain definition: terms in rank order, divided once, rounded once. `magnitude` becomes the sum of
    // all terms' magnitudes.
    T sum(std::int64_t i, int divisor, double& magnitude) const {
        using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
        Sum sum = static_cast<Sum>(to_double(of(0, i)));
        magnitude = std::abs(static_cast<double>(sum));
        for (int rank = 1; rank < members(); ++rank) {
            const Sum term = static_cast<Sum>(to_double(of(rank, i)));
            sum += term;
            magnitude += std::abs(static_cast<double>(term));
        }
        sum *= static_cast<Sum>(1.0 / divisor);
        return from_double<T>(static_cast<double>(sum));
    }

  private:
    std::vector<std::vector<T>> terms_;  // by rank
};

// What a rank contributes to a collective and what it must have afterwards. An in-place call has one buffer
// for both.
template <class T>
class Part {
  public:
    Part(plan::Operation operation, std::shared_ptr<const Terms<T>> terms, int place, bool in_place,
         int divisor)
        : operation_(operation), place_(place), elements_(terms->elements()), terms_(std::move(terms)) {
        const int members = terms_->members();
        const std::int64_t elements = elements_;
        const std::int64_t each = (elements + members - 1) / members;
        begin_ = std::min(elements, place * each);
        own_ = std::min(elements, begin_ + each) - begin_;
        const std::int64_t in = operation == plan::Operation::all_gather ? own_ : elements;
        const std::int64_t out = operation == plan::Operation::reduce_scatter ? own_ : elements;
        const bool gathers = operation == plan::Operation::all_gather;
        // The larger buffer comes first, followed by the other unless the call is in place.
        input_at_ = in_place ? (gathers ? begin_ : 0) : (gathers ? out : 0);
        output_at_ =
            in_place ? (operation == plan::Operation::reduce_scatter ? begin_ : 0) : (gathers ? 0 : in);
        memory_.assign(static_cast<std::size_t>(in_place ? std::max(in, out) : in + out) + 1,
                       from_double<T>(-77));
        const std::int64_t first = gathers ? begin_ : 0;
        for (std::int64_t i = 0; i < in; ++i) at(input_at_ + i) = terms_->of(gathers ? 0 : place, first + i);
        call_.operation = operation;
        call_.dtype = dtype_of<T>();
        call_.input = memory_.data() + input_at_;
        call_.output = memory_.data() + output_at_;
        call_.full_elements = elements;
        call_.divisor = divisor;
        outputs_ = out;
    }

    const collective::CollectiveCall& call() const { return call_; }
    // The number of wrong elements of the output. `tolerance` of a sum is relative to the sum of its terms'
    // magnitudes; with 0 every bit must be equal.
    std::int64_t wrong(double tolerance = 0) {
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < outputs_; ++i) {
            double magnitude = 0;
            const std::int64_t element = operation_ == plan::Operation::reduce_scatter ? begin_ + i : i;
            const T expected = this->expected(element, magnitude);
            const T got = at(output_at_ + i);
            const bool right = tolerance > 0
                                   ? std::abs(to_double(got) - to_double(expected)) <= tolerance * magnitude
                                   : same_bits(got, expected);
            if (!right) ++count;
        }
        if (!same_bits(memory_.back(), from_double<T>(-77))) ++count;  // nothing after the output is written
        return count;
    }
    // Changes the input, which a member may do once its part is complete.
    void overwrite_input() {
        if (call_.input == call_.output || operation_ == plan::Operation::barrier) return;
        const std::int64_t in = operation_ == plan::Operation::all_gather ? own_ : elements_;
        const bool apart = input_at_ + in <= output_at_ || output_at_ + outputs_ <= input_at_;
        if (apart && in > 0)
            std::memset(static_cast<void*>(&at(input_at_)), 0x5a, static_cast<std::size_t>(in) * sizeof(T));
    }

  private:
    T& at(std::int64_t i) { return memory_[static_cast<std::size_t>(i)]; }
    T expected(std::int64_t i, double& magnitude) const {
        if (operation_ == plan::Operation::all_to_all) {
            const std::int64_t each = elements_ / terms_->members();
            return terms_->of(static_cast<int>(i / each), place_ * each + i % each);
        }
        const bool moves =
            operation_ == plan::Operation::all_gather || operation_ == plan::Operation::broadcast;
        return moves ? terms_->of(0, i) : terms_->sum(i, call_.divisor, magnitude);
    }

    plan::Operation operation_;
    int place_;
    std::int64_t elements_;
    std::shared_ptr<const Terms<T>> terms_;
    std::int64_t begin_ = 0, own_ = 0, input_at_ = 0, output_at_ = 0, outputs_ = 0;
    std::vector<T> memory_;
    collective::CollectiveCall call_;
};

// Relays the inquiries among the ranks of a rig, and their answers.
class MemoryInquiries {
  public:
    std::shared_ptr<comm::Inquiry> inquiry(int rank) { return std::make_shared<One>(*this, rank); }
    // The rank no longer receives questions, like a group whose thread hangs.
    void silence(int rank) {
        const std::lock_guard lock(mutex_);
        silent_.insert(rank);
    }

  private:
    class One final : public comm::Inquiry {
      public:
        One(MemoryInquiries& all, int rank) : all_(all), rank_(rank) {}
        void listen(std::function<void()> asked) override {
            const std::lock_guard lock(all_.mutex_);
            all_.asked_[rank_] = std::move(asked);
        }
        void stop_listening() override { listen(nullptr); }
        void ask() override {
            const std::lock_guard lock(all_.mutex_);
            all_.answers_.clear();
            for (const auto& [rank, asked] : all_.asked_) {
                if (asked && !all_.silent_.contains(rank)) asked();
            }
        }
        void answer(const comm::Standing& standing) override {
            const std::lock_guard lock(all_.mutex_);
            all_.answers_[rank_] = standing;
        }
        std::optional<comm::Standing> of(int rank) const override {
            const std::lock_guard lock(all_.mutex_);
            const auto found = all_.answers_.find(rank);
            return found == all_.answers_.end() ? std::nullopt : std::optional(found->second);
        }

      private:
        MemoryInquiries& all_;
        int rank_;
    };
    std::mutex mutex_;
    std::map<int, std::function<void()>> asked_;
    std::map<int, comm::Standing> answers_;
    std::set<int> silent_;
};

// One process group per rank.
class GroupRig {
  public:
    struct Options {
        int shard = 0;     // 0: all ranks
        int pipeline = 1;  // stages
        comm::Sums sums = comm::Sums::ordered;
        std::uint64_t seed = 0;  // the seed of the wires
        double timeout_s = 0;
        bool ask = false;   // members ask each other before they blame one
        bool look = false;  // members poll for messages without a pause now and then
    };
    explicit GroupRig(int ranks) : GroupRig(ranks, Options{}) {}
    GroupRig(int ranks, const Options& options)
        : mesh_{ranks, options.shard == 0 ? ranks / options.pipeline : options.shard, 1, options.pipeline},
          wires_(ranks, options.seed) {
        troubles_.resize(static_cast<std::size_t>(ranks));
        sequences_.resize(static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
            comm::CollectiveGroupOptions group;
            group.mesh = mesh_;
            group.sums = options.sums;
            group.timeout_s = options.timeout_s;
            if (options.ask) group.inquiry = inquiries_.inquiry(rank);
            group.unit_name = [](int unit) { return "net." + std::to_string(unit + 2); };
            group.on_trouble = [this, rank](const comm::CollectiveTrouble& trouble) {
                const std::lock_guard lock(mutex_);
                troubles_[static_cast<std::size_t>(rank)].push_back(trouble);
            };
            groups_.push_back(make_collective_group(wires_.wire(rank), group));
            if (options.look) groups_.back()->look_while([calls = 0U]() mutable { return ++calls % 7 != 0; });
        }
    }
    ~GroupRig() {
        for (auto& group : groups_)
            group->fail(std::make_exception_ptr(std::runtime_error("the test is over")));
    }

    const plan::Mesh& mesh() const { return mesh_; }
    int ranks() const { return mesh_.ranks; }
    MemoryWires& wires() { return wires_; }
    MemoryInquiries& inquiries() { return inquiries_; }
    comm::ProcessGroup& group(int rank) { return *groups_[static_cast<std::size_t>(rank)]; }
    void reset(int rank) { groups_[static_cast<std::size_t>(rank)].reset(); }

    // The rank's next collective in its communicator.
    device::CollectiveLaunch launch(int rank, const collective::CollectiveCall& call,
                                    plan::Group group = plan::Group::world) {
        device::CollectiveLaunch launch;
        launch.communicator = mesh_.id(group, rank);
        launch.place = mesh_.place(group, rank);
        launch.members = mesh_.size(group);
        launch.sequence = sequences_[static_cast<std::size_t>(rank)][launch.communicator]++;
        launch.call = call;
        launch.step = 3;
        launch.unit = 2;
        return launch;
    }
    // The rank's next message to another, or from it.
    device::CollectiveLaunch message(int rank, int peer, const collective::CollectiveCall& call) {
        const bool sends = call.operation == plan::Operation::send;
        device::CollectiveLaunch launch = this->launch(rank, call);
        --sequences_[static_cast<std::size_t>(rank)][launch.communicator];
        launch.communicator = sends ? mesh_.channel(rank, peer) : mesh_.channel(peer, rank);
        launch.place = sends ? 0 : 1;
        launch.members = 2;
        launch.sequence = sequences_[static_cast<std::size_t>(rank)][launch.communicator]++;
        return launch;
    }
    std::future<void> begin(int rank, const device::CollectiveLaunch& launch,
                            const std::function<void()>& when_done = {}) {
        auto promise = std::make_shared<std::promise<void>>();
        auto future = promise->get_future();
        groups_[static_cast<std::size_t>(rank)]->begin(
            launch, [promise, when_done](const std::exception_ptr& error) {
                if (error) return promise->set_exception(error);  // a second call would throw
                if (when_done) when_done();
                promise->set_value();
            });
        return future;
    }
    std::vector<comm::CollectiveTrouble> troubles(int rank) {
        const std::lock_guard lock(mutex_);
        return troubles_[static_cast<std::size_t>(rank)];
    }

  private:
    plan::Mesh mesh_;
    MemoryWires wires_;
    MemoryInquiries inquiries_;
    std::mutex mutex_;
    std::vector<std::vector<comm::CollectiveTrouble>> troubles_;
    std::vector<std::map<plan::CommunicatorId, std::int64_t>> sequences_;  // by rank
    std::vector<std::unique_ptr<comm::ProcessGroup>> groups_;
};

// The error with which a collective ended; empty if it succeeded.
inline std::string error_of(std::future<void>& future) {
    if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) return "still not over";
    try {
        future.get();
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

}  // namespace shardscope::trainer::testing
