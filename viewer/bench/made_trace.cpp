// See made_trace.h.
#include "viewer/bench/made_trace.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "traces/store/write/writer.h"

namespace shardscope::viewer::bench {
namespace {

using namespace traces::schema;

constexpr int kRanks = 8, kThreads = 4, kNames = 300;

// One thread's ranges, nested four deep: each range but the innermost ones contains four.
class Thread {
  public:
    Thread(traces::store::DatabaseWriter& to, std::int64_t tid, const std::vector<StringId>& names,
           unsigned seed)
        : to_(to), names_(names), random_(seed) {
        range_.global_tid = tid;
    }
    // Returns the number of ranges written.
    int step() {
        written_ = 0;
        time_ += 2000 + random_() % 30'000;
        nest(0);
        return written_;
    }

  private:
    void nest(int depth) {
        const std::int64_t start = time_;
        time_ += 100 + random_() % 400;
        if (depth < 3) {
            for (int i = 0; i < 4; ++i) {
                nest(depth + 1);
                time_ += 50 + random_() % (depth == 0 ? 4000 : 900);
            }
        } else {
            time_ += random_() % 50 == 0 ? random_() % 40'000 : random_() % 3000;
        }
        range_.start = start;
        range_.end = time_;
        range_.text = names_[(static_cast<std::size_t>(depth) * 75 + random_() % 75) % names_.size()];
        to_.add(range_);
        ++written_;
    }
    traces::store::DatabaseWriter& to_;
    const std::vector<StringId>& names_;
    std::mt19937 random_;
    RangeRow range_;
    std::int64_t time_ = 0;
    int written_ = 0;
};

// Returns the process of the rank.
std::int64_t add_rank(traces::store::DatabaseWriter& to, int rank) {
    const std::int64_t pid = 1000 + rank;
    to.add(RankRow{.rank = rank,
                   .device = rank,
                   .global_pid = global_pid(pid),
                   .global_tid = global_tid(pid, pid),
                   .host = "host",
                   .device_name = "GPU"});
    return pid;
}

}  // namespace

void make_trace(const std::string& path, std::int64_t events) {
    traces::store::DatabaseWriter to({.path = path, .overwrite = true});
    std::vector<StringId> names;
    for (int n = 0; n < kNames; ++n) names.push_back(to.intern(fmt::format("aten::operator_{}", n)));
    std::vector<Thread> threads;
    for (int r = 0; r < kRanks; ++r) {
        const std::int64_t pid = add_rank(to, r);
        for (int t = 0; t < kThreads; ++t) {
            const std::int64_t tid = global_tid(pid, pid + t);
            to.add(ThreadRow{.global_tid = tid, .name = fmt::format("thread {}", t), .rank = r});
            threads.emplace_back(to, tid, names, static_cast<unsigned>(r * kThreads + t + 1));
        }
    }
    std::int64_t written = 0;
    for (std::int64_t round = 0; written < events; ++round) {
        for (Thread& thread : threads) written += thread.step();
        if (round % 1000 == 0) to.commit();
    }
    to.finish(written * 100, 0);
}

void make_device_trace(const std::string& path, std::int64_t events) {
    traces::store::DatabaseWriter to({.path = path, .overwrite = true});
    std::vector<StringId> names;
    for (int n = 0; n < kNames; ++n) names.push_back(to.intern(fmt::format("gemm_{}_kernel", n)));
    for (int r = 0; r < kRanks; ++r) add_rank(to, r);
    std::mt19937 random(1);
    std::array<std::int64_t, kRanks> times{};
    for (std::int64_t i = 0; i < events; ++i) {
        const auto r = static_cast<std::size_t>(i % kRanks);
        const std::int64_t start = times[r] + random() % 500, end = start + 500 + random() % 9000;
        times[r] = end;
        if (i % 10 == 9) {
            MemcpyRow row;
            row.start = start;
            row.end = end;
            row.device = static_cast<int>(r);
            row.stream = 9;
            row.correlation = i + 1;
            row.global_pid = global_pid(1000 + static_cast<std::int64_t>(r));
            row.bytes = 1 << 20;
            to.add(row);
        } else {
            KernelRow row;
            row.start = start;
            row.end = end;
            row.device = static_cast<int>(r);
            row.stream = i % 3 == 0 ? 7 : 8;
            row.correlation = i + 1;
            row.global_pid = global_pid(1000 + static_cast<std::int64_t>(r));
            row.short_name = row.demangled_name = names[random() % names.size()];
            to.add(row);
        }
        if (i % 1'000'000 == 0) to.commit();
    }
    to.finish(*std::max_element(times.begin(), times.end()), 0);
}

}  // namespace shardscope::viewer::bench
