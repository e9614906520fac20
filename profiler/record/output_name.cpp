// Expands patterns, and reads the launchers' variables.
#include "profiler/record/output_name.h"

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/machine.h"

namespace shardscope::profiler {
namespace {

std::optional<int> number(const std::optional<std::string>& text) {
    const std::optional<int> value = text ? traces::schema::number_of<int>(*text) : std::nullopt;
    return value.value_or(-1) < 0 ? std::nullopt : value;
}

struct Expanded {
    std::string path;
    std::string all;  // a shell pattern for the names of all ranks
    bool differs = false;
};

Expanded expand(const std::string& pattern, pid_t pid, int rank, const Environment& environment) {
    Expanded result;
    const auto put = [&](const std::string& value, bool differs) {
        result.path += value;
        result.all += differs ? "*" : value;
        result.differs |= differs;
    };
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '%') {
            put(std::string(1, pattern[at]), false);
            continue;
        }
        const char what = ++at < pattern.size() ? pattern[at] : '\0';
        const std::size_t close = what == 'q' ? pattern.find('}', at) : std::string::npos;
        if (what == '%') {
            put("%", false);
        } else if (what == 'p') {
            put(fmt::format("{}", pid), true);
        } else if (what == 'r') {
            put(fmt::format("{}", rank), true);
        } else if (what == 'h') {
            put(traces::store::host_name("host"), true);
        } else if (close != std::string::npos && pattern[at + 1] == '{') {
            const std::string name = pattern.substr(at + 2, close - at - 2);
            const auto value = environment(name);
            if (!value) {
                throw std::invalid_argument(
                    fmt::format("-o {}: the environment variable {} is not set", pattern, name));
            }
            put(*value, true);
            at = close;
        } else {
            throw std::invalid_argument(
                fmt::format("-o {}: a % must be followed by p, r, h, q{{NAME}} or another %", pattern));
        }
    }
    return result;
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<LaunchedRank> launched_rank(const Environment& environment) {
    // A batch script of Slurm has SLURM_PROCID and SLURM_NTASKS too, but is one process: only srun's tasks
    // have SLURM_STEP_NUM_TASKS.
    constexpr struct {
        const char *rank, *ranks, *local_rank;
    } kLaunchers[] = {{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
                      {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"},
                      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
                      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};
    for (const auto& variables : kLaunchers) {
        const auto rank = number(environment(variables.rank));
        const auto ranks = number(environment(variables.ranks));
        if (rank && ranks && *ranks > 1)
            return LaunchedRank{*rank, *ranks, number(environment(variables.local_rank))};
    }
    return std::nullopt;
}

OutputName output_name(const std::string& wanted, const std::string& program, pid_t pid,
                       const Environment& environment) {
    const auto launched = launched_rank(environment);
    OutputName name;
    name.made_up = wanted.empty();
    std::string pattern = wanted;
    if (wanted.empty()) {
        // The ranks of one job need a name that they agree on, so without the pid.
        pattern = launched ? fmt::format("shardscope-{}.sqlite", program)
                           : fmt::format("shardscope-{}-{}.sqlite", program, pid);
    }
    std::string escaped;  // a percent sign in the program's name means itself
    for (const char c : pattern)
        escaped += c == '%' && wanted.empty() ? std::string("%%") : std::string(1, c);
    Expanded file = expand(escaped, pid, launched ? launched->rank : 0, environment);
    std::string merged = file.path;
    if (launched && !file.differs) {
        const std::size_t slash = file.path.rfind('/');
        std::size_t dot = file.path.rfind('.');
        const std::size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
        if (dot == std::string::npos || dot <= name_begin) dot = file.path.size();
        const std::string ending = file.path.substr(dot), stem = file.path.substr(0, dot);
        file.path = fmt::format("{}.rank{}{}", stem, launched->rank, ending);
        file.all = fmt::format("{}.rank*{}", stem, ending);
    } else if (launched) {
        const std::size_t slash = file.path.rfind('/');
        merged = (slash == std::string::npos ? "" : file.path.substr(0, slash + 1)) + "merged.sqlite";
    }
    name.path = file.path;
    if (launched) {
        name.all_ranks = file.all;
        name.merged = merged;
    }
    return name;
}

}  // namespace shardscope::profiler
