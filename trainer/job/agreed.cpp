#include "trainer/job/agreed.h"

#include <cstddef>
#include <vector>

#include <fmt/core.h>

#include "trainer/job/keys.h"

namespace shardscope::trainer::job {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return lines;
}

}  // namespace

std::string agreed_values(const Job& job) {
    std::string text;
    for (const Key& key : keys()) {
        if (key.own && !key.all_or_none) continue;
        std::string value = to_text(key.get(job));
        if (key.all_or_none) value = value == to_text(std::string()) ? "unset" : "set";
        for (char& c : value) c = c == '\n' ? ' ' : c;
        text += fmt::format("{} = {}\n", key.full_name(), value);
    }
    return text;
}

void check_agreed(const Job& job, std::string_view of_rank_0) {
    const std::string text = agreed_values(job);
    const std::vector<std::string_view> own = lines_of(text), first = lines_of(of_rank_0);
    std::string differences;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const std::string_view theirs = i < first.size() ? first[i] : std::string_view();
        if (own[i] == theirs) continue;
        const std::size_t value = theirs.find(" = ");
        differences += fmt::format("{}{}, and {} on rank 0", differences.empty() ? "" : "; ", own[i],
                                   value == std::string_view::npos ? "unknown" : theirs.substr(value + 3));
    }
    if (!differences.empty()) throw JobError(fmt::format("{}; give all ranks the same job", differences));
}

}  // namespace shardscope::trainer::job
