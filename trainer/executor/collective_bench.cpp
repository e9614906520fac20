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
#include "trainer/executor/bench_plans.h"
#include "trainer/executor/host_memory.h"
#include "trainer/executor/instruments.h"
#include "trainer/executor/ranks.h"
#include "trainer/executor/wire_bench.h"
#include "trainer/job/job.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAlone = 5;  // measurements of a single collective in a round
constexpr std::int64_t kCopied = 64 << 20;

double us_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Up to three figures of a measurement, in microseconds.
using Times = std::array<double, 3>;

class Bench {
  public:
    Bench(const sharding::Program& program, const CollectiveBenchOptions& options, BenchPlans& plans,
          CollectiveBench& result)
        : program_(program),
          options_(options),
          plans_(plans),
          result_(result),
          ranks_(program, {options.recorder, {}, {}, options.processes, plans_.all(), {}},
                 [](int) { return HostCalls(); }) {
        if (options.recorder) describe_program(*options.recorder, program, ranks_.here());
    }
    void run();

  private:
    void host(int rank, RankRunner& runner);
    Times measure(const BenchPlans::OfCollective& measure, int rank, RankRunner& runner);
    Times measure(const BenchPlans::OfMessage& measure, int rank, RankRunner& runner);
    double timed(const plan::Plan& plan, int rank, RankRunner& runner);
    void carry_out(const plan::Plan& plan, int rank, RankRunner& runner);
    void round(int rank, RankRunner& runner);
    Times slowest_of_all(int rank, const Times& own);
    bool speaks(int rank, const std::string& what) const;
    bool one_memory() const {
        return program_.job().run.device == job::DeviceKind::cpu &&
               (!options_.processes || options_.processes->world->hosts() == 1);
    }

    const sharding::Program& program_;
    const CollectiveBenchOptions& options_;
    const BenchPlans& plans_;
    CollectiveBench& result_;
    Ranks ranks_;
    std::mutex mutex_;
    Times slowest_{};                                         // of this process's ranks
    std::vector<std::array<std::vector<double>, 2>> rounds_;  // by message: in_plan's latency_us and us
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

double Bench::timed(const plan::Plan& plan, int rank, RankRunner& runner) {
    const Clock::time_point begin = Clock::now();
    carry_out(plan, rank, runner);
    return us_since(begin);
}

// Of each repeat, and of one alone.
Times Bench::measure(const BenchPlans::OfCollective& measure, int rank, RankRunner& runner) {
    carry_out(measure.once, rank, runner);  // warms up
    std::array<double, kAlone> alone{};
    for (double& us : alone) {
        ranks_.meet();
        us = timed(measure.once, rank, runner);
    }
    std::nth_element(alone.begin(), alone.begin() + kAlone / 2, alone.end());
    ranks_.meet();
    return {timed(measure.many, rank, runner) / measure.rate.repeats, alone[kAlone / 2]};
}

// Half a round trip, of each message one way, and of each pair of messages both ways; the ranks that do not
// take part have nothing to do.
Times Bench::measure(const BenchPlans::OfMessage& measure, int rank, RankRunner& runner) {
    Times times{};
    const bool talks = rank == measure.rate.from || rank == measure.rate.to;
    const auto place = static_cast<std::size_t>(rank == measure.rate.from ? 0 : 1);
    const std::array<const BenchPlans::OfMessage::Ends*, 3> plans = {&measure.round_trips, &measure.one_way,
                                                                     &measure.both_ways};
    for (std::size_t i = 0; i < plans.size(); ++i) {
        ranks_.meet();
        if (!talks) {  // its next step has the number that it has on the others, which compare it
            steps_[static_cast<std::size_t>(rank)] += 2;
            continue;
        }
        carry_out((*plans[i])[place], rank, runner);  // warms up
        times[i] = timed((*plans[i])[place], rank, runner) / measure.rate.repeats;
    }
    times[0] /= 2;
    return times;
}

// Called on every rank's host thread; the slowest rank's figures, which the first rank of the process that
// has rank 0 gets.
Times Bench::slowest_of_all(int rank, const Times& own) {
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < own.size(); ++i) slowest_[i] = std::max(slowest_[i], own[i]);
    }
    ranks_.meet();
    Times all{};
    if (rank == ranks_.here().front()) {
        all = std::exchange(slowest_, {});
        if (options_.processes) {
            world::MessageWriter mine;
            for (const double us : all) mine.add(us);
            for (const std::string& text : options_.processes->world->gather(mine.text())) {
                world::MessageReader message(text);
                for (double& us : all) us = std::max(us, message.number<double>());
            }
        }
    }
    ranks_.meet();
    return all;
}

bool Bench::speaks(int rank, const std::string& what) const {
    if (rank != ranks_.here().front()) return false;
    if (rank == 0 && options_.on_progress) options_.on_progress(what);
    return true;
}

void keep_fastest(double& known, double us) {
    if (known == 0 || us < known) known = us;
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

void Bench::round(int rank, RankRunner& runner) {
    for (std::size_t i = 0; i < plans_.collectives().size(); ++i) {
        const BenchPlans::OfCollective& own = plans_.collectives()[i];
        const Times times = slowest_of_all(rank, measure(own, rank, runner));
        if (!speaks(rank, fmt::format("{} of {} bytes", name(own.rate.operation), own.rate.bytes))) continue;
        keep_fastest(result_.rates[i].us, times[0]);
        keep_fastest(result_.rates[i].latency_us, times[1]);
    }
    for (std::size_t i = 0; i < plans_.messages().size(); ++i) {
        const BenchPlans::OfMessage& own = plans_.messages()[i];
        const Times times = slowest_of_all(rank, measure(own, rank, runner));
        if (!speaks(rank, fmt::format("messages of {} bytes", own.rate.bytes))) continue;
        MessageTimes& known = result_.messages[i].in_plan;
        keep_fastest(known.latency_us, times[0]);
        keep_fastest(known.us, times[1]);
        keep_fastest(known.both_us, times[2]);
        for (std::size_t t = 0; t < rounds_[i].size(); ++t) rounds_[i][t].push_back(times[t]);
    }
}

void Bench::host(int rank, RankRunner& runner) {
    Copies copies(one_memory());
    runner.run(plans_.begin(), 0);
    runner.drain();
    for (int i = 0; i < kCollectiveBenchRounds; ++i) {
        ranks_.meet();
        if (one_memory()) {
            const double rate = copies.rate();  // while all copy
            ranks_.meet();
            if (rank == 0) result_.alone_copy_gbps = std::max(result_.alone_copy_gbps, copies.rate());
            if (rank == ranks_.here().front()) result_.copy_gbps = std::max(result_.copy_gbps, rate);
        }
        round(rank, runner);
    }
    runner.run(plans_.end(), 0);
    runner.drain();
}

double spread_of(std::vector<double>& rounds) {
    if (rounds.empty()) return 0;
    std::sort(rounds.begin(), rounds.end());
    return rounds.front() > 0 ? rounds[rounds.size() / 2] / rounds.front() - 1 : 0;
}

void Bench::run() {
    rounds_.resize(plans_.messages().size());
    ranks_.run([this](int rank, RankRunner& runner) { host(rank, runner); });
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
        result_.messages[i].latency_spread = spread_of(rounds_[i][0]);
        result_.messages[i].spread = spread_of(rounds_[i][1]);
    }
}

}  // namespace

CollectiveBench bench_collectives(const sharding::Program& program, const CollectiveBenchOptions& options) {
    BenchPlans plans(program.mesh(), options);
    CollectiveBench result;
    for (const BenchPlans::OfCollective& measure : plans.collectives()) result.rates.push_back(measure.rate);
    for (const BenchPlans::OfMessage& measure : plans.messages()) result.messages.push_back(measure.rate);
    if (options.processes && program.job().run.device == job::DeviceKind::cpu)
        measure_on_wire(*options.processes, options, program.job().run.timeout, result.messages);
    Bench(program, options, plans, result).run();
    return result;
}

}  // namespace shardscope::trainer::executor
