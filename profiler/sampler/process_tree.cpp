#include "profiler/sampler/process_tree.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

namespace shardscope::profiler {

std::vector<pid_t> process_tree(const SystemFiles& files, pid_t root) {
    constexpr std::size_t kMost = 4096;
    std::vector<pid_t> tree = {root};
    for (std::size_t i = 0; i < tree.size(); ++i) {
        const std::string tasks = fmt::format("/proc/{}/task", tree[i]);
        for (const std::string& task : files.names_in(tasks)) {
            const std::string children = files.read(fmt::format("{}/{}/children", tasks, task)).value_or("");
            const char* at = children.c_str();
            for (char* end = nullptr; tree.size() < kMost; at = end) {
                const long child = std::strtol(at, &end, 10);
                if (end == at) break;
                const auto pid = static_cast<pid_t>(child);
                if (std::find(tree.begin(), tree.end(), pid) == tree.end()) tree.push_back(pid);
            }
        }
    }
    return tree;
}

}  // namespace shardscope::profiler
