#include "profiler/sampler/machine_counters.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/schema/text.h"

namespace shardscope::profiler {
namespace {

// Version 1 prints a number near 2^63 where memory is not limited.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// The folder of a group and those above it, from its own up to the mount's: a group's path is not there where
// a container sees only its own part of the tree, which then begins at the mount.
std::vector<std::string> folders_of(const SystemFiles& files, const std::string& mount, std::string path) {
    if (!files.exists(mount + path)) path = "/";
    std::vector<std::string> folders;
    for (; path.size() > 1; path.erase(path.rfind('/'))) folders.push_back(mount + path);
    folders.push_back(mount);
    return folders;
}

void limit_cores(ControlGroup& group, double cores, const std::string& folder) {
    if (cores <= 0 || (group.cpu_cores && *group.cpu_cores <= cores)) return;
    group.cpu_cores = cores;
    group.cpu_statistics = folder + "/cpu.stat";
}

void limit_memory(ControlGroup& group, std::optional<std::uint64_t> bytes) {
    if (!bytes || *bytes >= kNoLimit) return;
    const auto limit = static_cast<std::int64_t>(*bytes);
    group.memory_bytes = std::min(group.memory_bytes.value_or(limit), limit);
}

void read_version_2(const SystemFiles& files, const std::string& folder, ControlGroup& group) {
    double quota = 0, period = 0;  // "200000 100000", or "max 100000"
    if (std::sscanf(files.line(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2 && period > 0)
        limit_cores(group, quota / period, folder);
    limit_memory(group, files.number(folder + "/memory.max"));
}

void read_cpu_of_version_1(const SystemFiles& files, const std::string& folder, ControlGroup& group) {
    // The quota is -1 where there is none.
    const auto quota = files.number(folder + "/cpu.cfs_quota_us");
    const auto period = files.number(folder + "/cpu.cfs_period_us");
    if (quota && period && *period > 0)
        limit_cores(group, static_cast<double>(*quota) / static_cast<double>(*period), folder);
}

// The lines of /proc/self/cgroup are "NUMBER:CONTROLLERS:PATH"; that of version 2 is "0::PATH".
void read_line(const SystemFiles& files, std::string_view line, ControlGroup& group) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (path.empty() || path[0] != '/') return;
    const std::string tree = "/sys/fs/cgroup";
    if (controllers.empty()) {
        for (const std::string& mount : {tree, tree + "/unified"}) {
            if (!files.exists(mount + "/cgroup.controllers") && mount != tree) continue;
            for (const std::string& folder : folders_of(files, mount, path))
                read_version_2(files, folder, group);
        }
        return;
    }
    const std::string listed = fmt::format(",{},", controllers);
    if (listed.find(",cpu,") != std::string::npos) {
        for (const std::string& folder : folders_of(files, tree + "/cpu", path))
            read_cpu_of_version_1(files, folder, group);
    }
    if (listed.find(",memory,") != std::string::npos) {
        for (const std::string& folder : folders_of(files, tree + "/memory", path))
            limit_memory(group, files.number(folder + "/memory.limit_in_bytes"));
    }
}

}  // namespace

ControlGroup control_group(const SystemFiles& files) {
    ControlGroup group;
    const std::string text = files.read("/proc/self/cgroup").value_or("");
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        read_line(files, rest.substr(0, end), group);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return group;
}

std::vector<traces::schema::RunInfoRow> host_facts(const SystemFiles& files, const std::string& host) {
    std::vector<traces::schema::RunInfoRow> facts;
    const auto add = [&](const char* name, const std::string& value) {
        facts.push_back({fmt::format("host.{}.{}", host, name), value});
    };
    const std::int64_t cpus = count_of_list(files.line("/sys/devices/system/cpu/online"));
    if (cpus > 0) add("cpus", fmt::format("{}", cpus));
    const auto memory = number_behind(files.read("/proc/meminfo").value_or(""), "MemTotal:");
    if (memory) add("memory_bytes", fmt::format("{}", *memory * 1024));
    const ControlGroup group = control_group(files);
    if (group.cpu_cores) add("cpu_limit_cores", fmt::format("{:g}", *group.cpu_cores));
    if (group.memory_bytes) add("memory_limit_bytes", fmt::format("{}", *group.memory_bytes));
    return facts;
}

std::optional<std::string> MachineCounters::read(const char* path, const char* what, bool& unreadable,
                                                 Samples& samples) {
    if (unreadable) return std::nullopt;
    int error = 0;
    std::optional<std::string> text = files_.read(path, &error, 16384);
    if (!text) {
        unreadable = true;
        samples.note(MonotonicTime::now(), fmt::format("{} is not recorded: {} cannot be read: {}", what,
                                                       path, std::strerror(error)));
    }
    return text;
}

void MachineCounters::add_cpu(Samples& samples) {
    const auto text = read("/proc/stat", "the use of the host's processors", no_cpu_, samples);
    if (!text) return;
    const MonotonicTime now = MonotonicTime::now();
    // "cpu  user nice system idle iowait irq softirq …", in ticks of all processors together.
    unsigned long long user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
    if (std::sscanf(text->c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                    &iowait, &irq, &softirq) != 7)
        return;
    if (const auto ticks = busy_.next(user + nice + system + irq + softirq, now)) {
        samples.add({now, "host_cpu_cores", *ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)), -1, -1});
    }
}

void MachineCounters::add_memory(Samples& samples) {
    const auto text = read("/proc/meminfo", "the host's available memory", no_memory_, samples);
    if (!text) return;
    if (const auto kib = number_behind(*text, "MemAvailable:"))
        samples.add(
            {MonotonicTime::now(), "host_memory_available_bytes", static_cast<double>(*kib) * 1024, -1, -1});
}

void MachineCounters::add_swap(Samples& samples) {
    const auto text = read("/proc/vmstat", "the host's swapping", no_swap_, samples);
    if (!text) return;
    const MonotonicTime now = MonotonicTime::now();
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    const auto add = [&](const char* word, GrowingCounter& counter, const char* name) {
        const auto pages = number_behind(*text, word);
        const auto rate = pages ? counter.next(*pages, now) : std::nullopt;
        if (rate) samples.add({now, name, *rate * page, -1, -1});
    };
    add("pswpin", swap_in_, "host_swap_in_bytes_per_second");
    add("pswpout", swap_out_, "host_swap_out_bytes_per_second");
}

void MachineCounters::add_throttling(Samples& samples) {
    if (group_.cpu_statistics.empty()) return;
    const auto text =
        read(group_.cpu_statistics.c_str(), "the throttling of the control group", no_group_, samples);
    if (!text) return;
    const auto all = number_behind(*text, "nr_periods"), throttled = number_behind(*text, "nr_throttled");
    if (!all || !throttled) return;
    const std::optional<Periods> before = std::exchange(periods_, Periods{*all, *throttled});
    if (!before || *all < before->all || *throttled < before->throttled) return;
    // A group that does not run has no periods, and is not throttled.
    const double percent = *all == before->all ? 0
                                               : 100 * static_cast<double>(*throttled - before->throttled) /
                                                     static_cast<double>(*all - before->all);
    samples.add({MonotonicTime::now(), "cgroup_throttled_percent", std::min(percent, 100.0), -1, -1});
}

void MachineCounters::sample(Samples& samples) {
    add_cpu(samples);
    add_memory(samples);
    add_swap(samples);
    add_throttling(samples);
}

}  // namespace shardscope::profiler
