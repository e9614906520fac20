#include "traces/analysis/base/shown_ranks.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace shardscope::traces::analysis {
namespace {

bool is_simulated(const store::Trace& trace) {
    return std::any_of(trace.config.begin(), trace.config.end(),
                       [](const auto& fact) { return fact.first.starts_with(kRanksLikeIt); });
}

// "peak 23974738120 bytes" -> "peak 23,974,738,120 bytes"; digits after a decimal point are unchanged.
std::string with_separators(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t digits = std::min(text.find_first_not_of("0123456789", at), text.size()) - at;
        const bool fraction = at > 0 && text[at - 1] == '.';
        for (std::size_t i = 0; i < digits; ++i) {
            if (i > 0 && !fraction && digits > 3 && (digits - i) % 3 == 0) out += ',';
            out += text[at + i];
        }
        at += digits;
        if (digits == 0) out += text[at++];
    }
    return out;
}

}  // namespace

int ranks_of_run(const store::Trace& trace) {
    const auto shown = static_cast<int>(trace.ranks.size());
    const std::string_view text = trace.config_value("run.ranks");
    int ranks = 0;
    std::from_chars(text.data(), text.data() + text.size(), ranks);
    return std::max(shown, ranks);
}

bool shows_some_ranks(const store::Trace& trace) {
    return is_simulated(trace) && static_cast<int>(trace.ranks.size()) < ranks_of_run(trace);
}

std::string shown_ranks_sentence(const store::Trace& trace) {
    if (!shows_some_ranks(trace)) return "";
    return fmt::format(
        "{} of the {} ranks that were simulated are shown in full: each of the others did what one of these "
        "did",
        with_separators(std::to_string(trace.ranks.size())),
        with_separators(std::to_string(ranks_of_run(trace))));
}

std::vector<std::string> ranks_like_it(const store::Trace& trace) {
    std::vector<std::string> sentences;
    for (const auto& [key, value] : trace.config) {
        if (key.starts_with(kRanksLikeIt))
            sentences.push_back(fmt::format("Rank {} represents {}.", key.substr(kRanksLikeIt.size()),
                                            with_separators(value)));
    }
    return sentences;
}

}  // namespace shardscope::traces::analysis
