// Reads what the kernel reports about other processes of this user.
#include "profiler/record/host_counters.h"

#include <cstdio>
#include <ctime>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {
namespace {

std::optional<std::int64_t> cpu_ns(pid_t pid) {
    clockid_t clock;
    timespec t;
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return std::nullopt;
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::optional<std::int64_t> resident_bytes(pid_t pid) {
    const traces::store::FileDescriptor file(
        ::open(fmt::format("/proc/{}/statm", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    char text[128] = {};
    const ssize_t size = ::read(file.get(), text, sizeof text - 1);
    long total = 0, resident = 0;
    if (size <= 0 || std::sscanf(text, "%ld %ld", &total, &resident) != 2) return std::nullopt;
    return std::int64_t{resident} * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

int HostCounters::sample(std::int64_t now_ns, std::span<const WatchedProcess> processes,
                         traces::store::EventSink& sink) {
    struct Sum {
        double cores = 0;
        std::int64_t bytes = 0;
        bool has_cores = false;
    };
    std::map<int, Sum> sums;
    std::map<pid_t, Usage> usage;
    for (const WatchedProcess& process : processes) {
        const auto cpu = cpu_ns(process.pid);
        const auto bytes = resident_bytes(process.pid);
        if (!cpu || !bytes || !usage.try_emplace(process.pid, Usage{*cpu, now_ns}).second) continue;
        Sum& sum = sums[process.rank];
        sum.bytes += *bytes;
        const auto before = last_.find(process.pid);
        if (before == last_.end() || now_ns <= before->second.time_ns || *cpu < before->second.cpu_ns)
            continue;
        sum.has_cores = true;
        sum.cores += static_cast<double>(*cpu - before->second.cpu_ns) /
                     static_cast<double>(now_ns - before->second.time_ns);
    }
    last_ = std::move(usage);
    int rows = 0;
    for (const auto& [rank, sum] : sums) {
        const auto add = [&, r = rank](const char* name, double value) {
            sink.add(traces::schema::CounterRow{now_ns, r, sink.intern(name), value});
            ++rows;
        };
        if (sum.has_cores) add("process_cpu_cores", sum.cores);
        add("process_resident_bytes", static_cast<double>(sum.bytes));
    }
    return rows;
}

}  // namespace shardscope::profiler
