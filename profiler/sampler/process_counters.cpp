#include "profiler/sampler/process_counters.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace shardscope::profiler {
namespace {

// The kernel counts a process's start in hundredths of a second.
constexpr std::int64_t kStartPrecisionNs = 20'000'000;

std::optional<std::int64_t> cpu_ns_of(pid_t pid) {
    clockid_t clock;
    timespec t;
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return std::nullopt;
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// When a process started, on the monotonic clock.
std::optional<MonotonicTime> start_of(const SystemFiles& files, pid_t pid) {
    const auto text = files.read(fmt::format("/proc/{}/stat", pid), nullptr, 4096);
    if (!text) return std::nullopt;
    // The name, in parentheses, may contain anything; the start is the twentieth field behind it.
    std::size_t at = text->rfind(')');
    for (int field = 0; field < 20 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
    long long ticks = 0;
    if (at == std::string::npos || std::sscanf(text->c_str() + at, "%lld", &ticks) != 1) return std::nullopt;
    // It is counted since the machine started, with the time that it slept.
    const std::int64_t slept = ClockTime<CLOCK_BOOTTIME>::now().ns - MonotonicTime::now().ns;
    return MonotonicTime(ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)) - slept);
}

bool has_ended(int error) {
    return error == ENOENT || error == ESRCH;
}

double rate(std::uint64_t now, std::uint64_t before, std::int64_t ns) {
    return static_cast<double>(now - before) * 1e9 / static_cast<double>(ns);
}

}  // namespace

struct ProcessCounters::Sum {
    double cores = 0, read = 0, written = 0;
    std::int64_t resident = 0, swapped = 0;
    bool has_cores = false, has_disk = false, has_resident = false, has_swap = false;
};

void ProcessCounters::told(pid_t pid, const char* file, const char* what, int error, MonotonicTime time,
                           Samples& samples) {
    samples.note(time, fmt::format("{} of process {} is not recorded: /proc/{}/{} cannot be read: {}", what,
                                   pid, pid, file, std::strerror(error)));
}

void ProcessCounters::add_disk(pid_t pid, Usage& usage, Samples& samples) {
    int error = 0;
    const auto io = files_.read(fmt::format("/proc/{}/io", pid), &error, 4096);
    if (io) {
        usage.read_bytes = number_behind(*io, "read_bytes:");
        usage.written_bytes = number_behind(*io, "write_bytes:");
    } else if (!has_ended(error) && !std::exchange(told_disk_, true)) {
        told(pid, "io", "what it reads from disks and writes to them", error, usage.time, samples);
    }
}

std::optional<ProcessCounters::Usage> ProcessCounters::read_usage(pid_t pid, MonotonicTime tick,
                                                                  Samples& samples) {
    Usage usage;
    usage.time = tick;
    const auto cpu = cpu_ns_of(pid);
    if (!cpu) return std::nullopt;
    usage.cpu_ns = *cpu;
    add_disk(pid, usage, samples);
    return usage;
}

// What a process had used at the last sample.
std::optional<ProcessCounters::Usage> ProcessCounters::usage_before(pid_t pid, const Usage& now) const {
    const auto before = last_.find(pid);
    // The system may have given a process's number to a new one.
    if (before != last_.end() && before->second.cpu_ns <= now.cpu_ns) return before->second;
    if (!last_tick_) return std::nullopt;
    const auto start = start_of(files_, pid);
    if (!start || start->ns + kStartPrecisionNs < last_tick_->ns) return std::nullopt;
    return Usage{*last_tick_, 0, 0, 0};
}

void ProcessCounters::sample(std::span<const WatchedProcess> processes, Samples& samples) {
    std::map<int, Sum> sums;
    std::map<pid_t, Usage> usages;
    const MonotonicTime tick = MonotonicTime::now();
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    for (const WatchedProcess& process : processes) {
        if (usages.count(process.pid) != 0) continue;
        const std::optional<Usage> now = read_usage(process.pid, tick, samples);
        if (!now) continue;
        usages.emplace(process.pid, *now);
        Sum& sum = sums[process.rank];
        int error = 0;
        const auto statm = files_.read(fmt::format("/proc/{}/statm", process.pid), &error, 128);
        long long total = 0, resident = 0;
        if (statm && std::sscanf(statm->c_str(), "%lld %lld", &total, &resident) == 2 && resident > 0) {
            sum.resident += resident * page;
            sum.has_resident = true;
        } else if (!statm && !has_ended(error) && !std::exchange(told_memory_, true)) {
            told(process.pid, "statm", "the memory", error, now->time, samples);
        }
        if (const auto status = files_.read(fmt::format("/proc/{}/status", process.pid), nullptr, 4096)) {
            if (const auto kib = number_behind(*status, "VmSwap:")) {
                sum.swapped += static_cast<std::int64_t>(*kib) * 1024;
                sum.has_swap = true;
            }
        }
        const std::optional<Usage> before = usage_before(process.pid, *now);
        const std::int64_t ns = before ? now->time - before->time : 0;
        if (ns <= 0) continue;
        sum.has_cores = true;
        sum.cores += static_cast<double>(now->cpu_ns - before->cpu_ns) / static_cast<double>(ns);
        const auto grown = [](const auto& later, const auto& earlier) {
            return later && earlier && *later >= *earlier;
        };
        if (!grown(now->read_bytes, before->read_bytes) || !grown(now->written_bytes, before->written_bytes))
            continue;
        sum.has_disk = true;
        sum.read += rate(*now->read_bytes, *before->read_bytes, ns);
        sum.written += rate(*now->written_bytes, *before->written_bytes, ns);
    }
    last_ = std::move(usages);
    last_tick_ = tick;
    for (const auto& [rank, sum] : sums) {
        const auto add = [&, r = rank](bool known, const char* name, double value) {
            if (known) samples.add({tick, name, value, r, -1});
        };
        add(sum.has_cores, "process_cpu_cores", sum.cores);
        add(sum.has_resident, "process_resident_bytes", static_cast<double>(sum.resident));
        add(sum.has_swap, "process_swap_bytes", static_cast<double>(sum.swapped));
        add(sum.has_disk, "process_read_bytes_per_second", sum.read);
        add(sum.has_disk, "process_written_bytes_per_second", sum.written);
    }
}

}  // namespace shardscope::profiler
