#include "trainer/executor/collective_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include <fmt/core.h>

#include "profiler/recorder/recorder.h"
#include "trainer/executor/host_memory.h"
#include "trainer/executor/instruments.h"
#include "trainer/executor/ranks.h"
#include "trainer/job/job.h"
#include "trainer/plan/builder.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kOperations = {plan::Operation::all_gather, plan::Operation::reduce_scatter,
                                    plan::Operation::all_reduce, plan::Operation::broadcast};
constexpr int kAlone = 5;                             // measurements of a single collective in a round
constexpr std::int64_t kRepeatedBytes = 128LL << 20;  // maximum per operation and size in a round
constexpr int kMostRepeats = 100, kFewestRepeats = 3;
constexpr std::int64_t kCopied = 64 << 20;

double us_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

int repeats_of(std::int64_t bytes) {
    return static_cast<int>(std::clamp<std::int64_t>(kRepeatedBytes / bytes, kFewestRepeats, kMostRepeats));
}

// Every Plan has the same two buffers: the full one, and one rank's piece of it.
class Plans {
  public:
    Plans(const sharding::Program& program, const CollectiveBenchOptions& options);

    struct Measure {
        CollectiveRate rate;
        plan::Plan once, many;
    };
    const plan::Plan& begin() const { return begin_; }
    const plan::Plan& end() const { return end_; }
    const std::vector<Measure>& measures() const { return measures_; }
    std::vector<const plan::Plan*> all() const;

  private:
    plan::Plan write(const Measure& measure, int repeats) const;

    int ranks_;
    std::vector<plan::Buffer> buffers_;
    plan::Plan begin_, end_;
    std::vector<Measure> measures_;
};

Plans::Plans(const sharding::Program& program, const CollectiveBenchOptions& options)
    : ranks_(program.mesh().ranks) {
    const auto device = [&](const char* name, std::int64_t bytes) {
        buffers_.push_back(
            {name, plan::MemoryCategory::communication, plan::MemorySpace::device, bytes, -1, -1});
    };
    device("all ranks' elements", options.largest);
    device("own elements", options.largest);
    plan::PlanBuilder begin(plan::PlanKind::setup, buffers_), end(plan::PlanKind::finish, buffers_);
    for (plan::BufferId buffer = 0; buffer < 2; ++buffer) {
        begin.allocate(buffer, plan::Stream::compute);
        begin.memset(begin.whole(buffer));
        end.free(buffer);
    }
    begin_ = begin.take();
    end_ = end.take();
    for (const plan::Operation operation : kOperations) {
        for (std::int64_t bytes = options.smallest; bytes <= options.largest; bytes *= 4) {
            Measure measure;
            // As in nccl-tests: whole pieces of whole elements.
            const std::int64_t piece = std::int64_t{4} * ranks_;
            measure.rate.operation = operation;
            measure.rate.bytes = std::max<std::int64_t>(1, bytes / piece) * piece;
            measure.rate.repeats = repeats_of(measure.rate.bytes);
            measure.once = write(measure, 1);
            measure.many = write(measure, measure.rate.repeats);
            measures_.push_back(std::move(measure));
        }
    }
}

plan::Plan Plans::write(const Measure& measure, int repeats) const {
    plan::PlanBuilder builder(plan::PlanKind::steady, buffers_);
    const std::int64_t bytes = measure.rate.bytes;
    const bool gathers = measure.rate.operation == plan::Operation::all_gather;
    const bool pieces = gathers || measure.rate.operation == plan::Operation::reduce_scatter;
    const plan::Arg all{0, 0, bytes, 0}, own{1, 0, pieces ? bytes / ranks_ : bytes, 0};
    {
        const plan::PlanBuilder::Range range(
            builder, fmt::format("{} of {} bytes", name(measure.rate.operation), bytes));
        for (int i = 0; i < repeats; ++i) {
            builder.collective({.operation = measure.rate.operation}, gathers ? all : own,
                               gathers ? own : all, bytes, plan::Stream::unshard);
        }
        const plan::EventId over = builder.new_event();
        builder.record(over, plan::Stream::unshard);
        builder.host_wait(over);
    }
    return builder.take();
}

std::vector<const plan::Plan*> Plans::all() const {
    std::vector<const plan::Plan*> all = {&begin_, &end_};
    for (const Measure& measure : measures_) {
        all.push_back(&measure.once);
        all.push_back(&measure.many);
    }
    return all;
}

// Bytes that a rank must read from and write to memory for its part, each byte of each buffer once.
double bytes_moved(plan::Operation operation, std::int64_t bytes, int ranks) {
    const auto all = static_cast<double>(bytes), piece = all / ranks;
    switch (operation) {
        case plan::Operation::reduce_scatter:
            return all + piece;  // its piece of every rank's input, and the sum
        case plan::Operation::all_reduce:
            return all + piece + 2 * all;  // as a reduce_scatter, then an all_gather of the sums
        default:
            return 2 * all;
    }
}

class Bench {
  public:
    Bench(const sharding::Program& program, const CollectiveBenchOptions& options)
        : program_(program),
          options_(options),
          plans_(program, options),
          ranks_(program, {options.recorder, {}, {}, options.processes, plans_.all(), {}},
                 [](int) { return HostCalls(); }) {
        if (options.recorder) describe_program(*options.recorder, program, ranks_.here());
    }
    CollectiveBench run();

  private:
    struct Times {
        double us = 0, latency_us = 0;
    };
    void host(int rank, RankRunner& runner);
    Times measure(const Plans::Measure& measure, int rank, RankRunner& runner);
    void carry_out(const plan::Plan& plan, int rank, RankRunner& runner);
    void bring_together(std::size_t index, int rank, const Times& own);
    void complete();
    bool one_memory() const {
        return program_.job().run.device == job::DeviceKind::cpu &&
               (!options_.processes || options_.processes->world->hosts() == 1);
    }

    const sharding::Program& program_;
    const CollectiveBenchOptions& options_;
    Plans plans_;
    Ranks ranks_;
    std::mutex mutex_;
    CollectiveBench result_;
    Times slowest_;  // of this process's ranks
    std::vector<int> steps_ = std::vector<int>(static_cast<std::size_t>(program_.mesh().ranks), 0);
};

// Each Plan is a step of the trace.
void Bench::carry_out(const plan::Plan& plan, int rank, RankRunner& runner) {
    int& step = steps_[static_cast<std::size_t>(rank)];
    const profiler::Ticks since = runner.trace().now();
    runner.run(plan, step);
    runner.trace().step(step, since);
    ++step;
}

Bench::Times Bench::measure(const Plans::Measure& measure, int rank, RankRunner& runner) {
    carry_out(measure.once, rank, runner);  // warms up
    std::array<double, kAlone> alone{};
    for (double& us : alone) {
        ranks_.meet();
        const Clock::time_point begin = Clock::now();
        carry_out(measure.once, rank, runner);
        us = us_since(begin);
    }
    std::nth_element(alone.begin(), alone.begin() + kAlone / 2, alone.end());
    ranks_.meet();
    const Clock::time_point begin = Clock::now();
    carry_out(measure.many, rank, runner);
    return {us_since(begin) / measure.rate.repeats, alone[kAlone / 2]};
}

// Called on every rank's host thread; the slowest rank counts.
void Bench::bring_together(std::size_t index, int rank, const Times& own) {
    {
        const std::lock_guard lock(mutex_);
        slowest_ = {std::max(slowest_.us, own.us), std::max(slowest_.latency_us, own.latency_us)};
    }
    ranks_.meet();
    if (rank == ranks_.here().front()) {
        if (options_.processes) {
            const std::string mine = world::MessageWriter().add(slowest_.us).add(slowest_.latency_us).text();
            for (const std::string& text : options_.processes->world->gather(mine)) {
                world::MessageReader message(text);
                slowest_.us = std::max(slowest_.us, message.number<double>());
                slowest_.latency_us = std::max(slowest_.latency_us, message.number<double>());
            }
        }
        CollectiveRate& rate = result_.rates[index];
        const bool first = rate.us == 0;
        rate.us = first ? slowest_.us : std::min(rate.us, slowest_.us);
        rate.latency_us = first ? slowest_.latency_us : std::min(rate.latency_us, slowest_.latency_us);
        if (rank == 0 && options_.on_rate) options_.on_rate(rate);
        slowest_ = {};
    }
    ranks_.meet();
}

// Memory allocated as a device allocates it, for the copies that are measured along with the collectives.
class Copies {
  public:
    explicit Copies(bool wanted) {
        if (!wanted) return;
        for (Memory* memory : {&from_, &to_}) {
            memory->reset(take_host_memory(kCopied));
            if (!*memory) throw std::bad_alloc();
            std::memset(memory->get(), 1, kCopied);
        }
    }
    // GB/s of bytes read and written.
    double rate() {
        const Clock::time_point begin = Clock::now();
        std::memcpy(to_.get(), from_.get(), kCopied);
        return 2e-3 * kCopied / us_since(begin);
    }

  private:
    struct GiveBack {
        void operator()(std::byte* data) const { give_back_host_memory(data); }
    };
    using Memory = std::unique_ptr<std::byte, GiveBack>;
    Memory from_, to_;
};

void Bench::host(int rank, RankRunner& runner) {
    Copies copies(one_memory());
    if (rank == ranks_.here().front()) {
        for (const Plans::Measure& measure : plans_.measures()) result_.rates.push_back(measure.rate);
    }
    runner.run(plans_.begin(), 0);
    runner.drain();
    for (int round = 0; round < kCollectiveBenchRounds; ++round) {
        ranks_.meet();
        if (one_memory()) {
            const double rate = copies.rate();  // while all copy
            if (rank == ranks_.here().front()) result_.copy_gbps = std::max(result_.copy_gbps, rate);
        }
        for (std::size_t i = 0; i < plans_.measures().size(); ++i) {
            bring_together(i, rank, measure(plans_.measures()[i], rank, runner));
        }
    }
    runner.run(plans_.end(), 0);
    runner.drain();
}

void Bench::complete() {
    if (result_.copy_gbps <= 0) return;
    for (CollectiveRate& rate : result_.rates) {
        rate.bound_us =
            bytes_moved(rate.operation, rate.bytes, program_.mesh().ranks) / result_.copy_gbps / 1e3;
    }
}

CollectiveBench Bench::run() {
    ranks_.run([this](int rank, RankRunner& runner) { host(rank, runner); });
    complete();
    return std::move(result_);
}

}  // namespace

CollectiveBench bench_collectives(const sharding::Program& program, const CollectiveBenchOptions& options) {
    return Bench(program, options).run();
}

}  // namespace shardscope::trainer::executor
