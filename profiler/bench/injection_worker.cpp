// Times in batches: a batch is so short that it is rarely interrupted, and the median ignores those that
// were. Between batches the tool gets time to drain, as with a program that does other work, too.
#include "profiler/bench/injection_worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/bench/injection_calls.h"

namespace shardscope::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatch = 20000;
constexpr int kBatches = 20;
constexpr int kWarmUp = 4;
constexpr int kSustained = 40;
constexpr auto kRest = std::chrono::milliseconds(20);

double nanoseconds(Clock::duration time) {
    return std::chrono::duration<double, std::nano>(time).count();
}

double median(std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

template <typename Call>
std::vector<double> batches(Call call, int count = kBatches, Clock::duration rest = kRest) {
    std::vector<double> times;
    for (int b = 0; b < count + kWarmUp; ++b) {
        const auto start = Clock::now();
        for (int i = 0; i < kBatch; ++i) {
            call();
            asm volatile("" ::: "memory");
        }
        const auto end = Clock::now();
        if (b >= kWarmUp) times.push_back(nanoseconds(end - start) / kBatch);
        if (rest != Clock::duration::zero()) std::this_thread::sleep_for(rest);
    }
    return times;
}

template <typename Call>
void report(std::FILE* file, const char* name, Call call) {
    std::vector<double> times = batches(call);
    std::fprintf(file, "%s %.3f\n", name, median(times));
}

std::uint64_t sink = 0;

}  // namespace

bool has_nvtx_headers() {
#if defined(SHARDSCOPE_HAS_NVTX)
    return true;
#else
    return false;
#endif
}

int time_calls(const char* result_file) {
    std::FILE* file = std::fopen(result_file, "w");
    if (file == nullptr) return 1;
    const auto source = profiler::clock_source();
    report(file, "two_clock_reads", [&] {
        sink += profiler::read_ticks(source).count;
        sink += profiler::read_ticks(source).count;
    });
    report(file, "short_text", [] {
        calls::push("forward");
        calls::pop();
    });
    report(file, "text_of_38", [] {
        calls::push("FullyShardedDataParallel.forward(root)");
        calls::pop();
    });
    const auto domain = calls::create("bench");
    const auto name = calls::register_string(domain, "registered");
    report(file, "registered", [&] {
        calls::push(domain, name);
        calls::pop(domain);
    });
    const std::uint64_t payload[2] = {0xABCDEF, 1 << 20};
    report(file, "payload_of_16", [&] {
        calls::push(domain, name, 1 << 24, payload, sizeof payload);
        calls::pop(domain);
    });
    std::vector<double> both[2];
    std::thread other([&] {
        both[1] = batches([] {
            calls::push("forward");
            calls::pop();
        });
    });
    both[0] = batches([] {
        calls::push("forward");
        calls::pop();
    });
    other.join();
    both[0].insert(both[0].end(), both[1].begin(), both[1].end());
    std::fprintf(file, "two_threads %.3f\n", median(both[0]));
    std::vector<double> sustained = batches(
        [] {
            calls::push("forward");
            calls::pop();
        },
        kSustained, Clock::duration::zero());
    std::fprintf(file, "sustained %.3f\n", median(sustained));
    std::fclose(file);
    return 0;
}

int make_ranges(const char* result_file, int threads, double rate, double seconds) {
    const double each = rate / threads;  // ranges per second
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(threads));
    std::vector<std::thread> workers;
    const auto start = Clock::now();
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            std::uint64_t made = 0;
            for (;;) {
                const double time = nanoseconds(Clock::now() - start) / 1e9;
                if (time >= seconds) break;
                const auto due = static_cast<std::uint64_t>(time * each);
                while (made < due) {
                    calls::push("FullyShardedDataParallel.forward");
                    calls::pop();
                    ++made;
                }
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
            sent[static_cast<std::size_t>(t)] = made;
        });
    }
    for (auto& worker : workers) worker.join();
    std::uint64_t sum = 0;
    for (const std::uint64_t n : sent) sum += n;
    std::FILE* file = std::fopen(result_file, "w");
    if (file == nullptr) return 1;
    std::fprintf(file, "sent %llu\nseconds %.3f\n", static_cast<unsigned long long>(sum),
                 nanoseconds(Clock::now() - start) / 1e9);
    std::fclose(file);
    return 0;
}

}  // namespace shardscope::bench
