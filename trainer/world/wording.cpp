#include "trainer/world/wording.h"

#include <fmt/core.h>

namespace shardscope::trainer::world {

std::string ranks_text(const std::vector<int>& ranks) {
    std::vector<std::string> parts;
    for (std::size_t first = 0; first < ranks.size();) {
        std::size_t last = first;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        if (last - first < 2) last = first;  // two in a row are not a range
        parts.push_back(last == first ? fmt::format("{}", ranks[first])
                                      : fmt::format("{}-{}", ranks[first], ranks[last]));
        first = last + 1;
    }
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t part = 0; part < parts.size(); ++part) {
        if (part > 0) text += part + 1 == parts.size() ? " and " : ", ";
        text += parts[part];
    }
    return text;
}

std::string process_text(const Member& member) {
    return fmt::format("process {} on host {}", member.pid, member.host);
}

std::string seconds_text(double seconds) {
    return fmt::format("{:.6g} s", seconds);
}

std::string ended_text(const Member& member) {
    return fmt::format("({}) has ended", process_text(member));
}

std::string silent_text(const Member& member, double seconds) {
    return fmt::format("({}) has been silent for {}; it may be stopped, or its host may be down",
                       process_text(member), seconds_text(seconds));
}

}  // namespace shardscope::trainer::world
