// The check verb: what is wrong with a trace, and finishing one whose run was killed.
#include <atomic>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "traces/analysis/info.h"
#include "traces/cli/verbs.h"
#include "traces/store/integrity.h"
#include "traces/store/loader.h"

namespace shardscope::traces {

int run_check(const std::string& file, Format format) {
    check_input(file);
    std::vector<std::string> faults, notes;
    try {
        if (std::string damage = damage_of(file); !damage.empty()) faults.push_back(std::move(damage));
        const auto trace = load_trace(file);
        for (std::string& fault : check_trace(*trace)) faults.push_back(std::move(fault));
        notes = check_notes(*trace);
    } catch (const StoreError& error) {
        if (faults.empty()) faults.emplace_back(error.what());
    }
    print(render_check(file, faults, notes, format));
    return faults.empty() ? kDone : kFailed;
}

}  // namespace shardscope::traces
