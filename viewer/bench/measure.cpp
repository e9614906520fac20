// See measure.h.
#include "viewer/bench/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace shardscope::viewer::bench {
namespace {

double seconds_of(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::int64_t status_kib(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(key)) return std::stoll(line.substr(key.size() + 1));
    }
    return 0;
}

}  // namespace

double process_seconds() {
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}
double thread_seconds() {
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
std::int64_t resident_bytes() {
    return status_kib("VmRSS:") * 1024;
}
std::int64_t largest_resident_bytes() {
    return status_kib("VmHWM:") * 1024;
}

std::vector<double> in_child(const std::function<std::vector<double>()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe can be made");
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("no process can be started");
    if (child == 0) {
        int status = 1;
        try {
            const std::vector<double> values = work();
            const auto bytes = values.size() * sizeof(double);
            status = ::write(ends[1], values.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 1;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "bench_viewer: %s\n", error.what());
        }
        ::_exit(status);
    }
    ::close(ends[1]);
    std::vector<double> values;
    double value = 0;
    while (::read(ends[0], &value, sizeof value) == static_cast<ssize_t>(sizeof value))
        values.push_back(value);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error("a measurement failed");
    return values;
}

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const auto last = static_cast<double>(values.size() - 1);
    return values[static_cast<std::size_t>(std::llround(share * last))];
}

}  // namespace shardscope::viewer::bench
