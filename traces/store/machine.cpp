#include "traces/store/machine.h"

#include <fstream>
#include <string_view>

#include <sys/utsname.h>
#include <unistd.h>

namespace shardscope::traces::store {

std::string processor_name() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
        if (!line.starts_with("model name")) continue;
        const auto colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2);
    }
    utsname name{};
    return uname(&name) == 0 ? name.machine : "CPU";
}

std::string host_name(const char* otherwise) {
    utsname name{};
    return uname(&name) == 0 ? name.nodename : otherwise;
}

std::string processors_of_process() {
    constexpr std::string_view kKey = "Cpus_allowed_list:\t";
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(kKey)) return line.substr(kKey.size());
    }
    return "";
}

std::int64_t physical_memory() {
    return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace shardscope::traces::store
