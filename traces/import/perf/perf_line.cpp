#include "traces/import/perf/perf_line.h"

#include <algorithm>
#include <limits>

#include "traces/schema/text.h"

namespace shardscope::traces::importer {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kDigits = "0123456789";
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

using schema::trimmed;

// Takes the last word from the end of `text`.
std::string_view take_last(std::string_view& text) {
    text = trimmed(text);
    const std::size_t blank = text.find_last_of(kBlank);
    const std::string_view word = blank == text.npos ? text : text.substr(blank + 1);
    text.remove_suffix(word.size());
    return word;
}

// "16922.928625", with six or nine digits after the point.
std::optional<std::int64_t> time_ns(std::string_view text) {
    const std::size_t point = text.find('.');
    if (point == text.npos || point + 1 == text.size() || text.size() - point - 1 > 9) return std::nullopt;
    const auto seconds = schema::number_of<std::int64_t>(text.substr(0, point));
    std::string fraction(text.substr(point + 1));
    if (fraction.find_first_not_of(kDigits) != fraction.npos) return std::nullopt;
    fraction.append(9 - fraction.size(), '0');
    const auto ns = schema::number_of<std::int64_t>(fraction);
    if (!seconds || !ns || *seconds < 0 || *seconds > std::numeric_limits<std::int32_t>::max())
        return std::nullopt;
    return *seconds * kNsPerSecond + *ns;
}

// The place of the ": " after the time: the first whose word before it is a time.
std::optional<std::size_t> end_of_time(std::string_view line, std::int64_t& time) {
    for (std::size_t colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1)) {
        std::string_view before = line.substr(0, colon);
        if (const auto ns = time_ns(take_last(before))) {
            time = *ns;
            return colon;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<PerfSample> read_perf_sample(std::string_view line) {
    PerfSample sample;
    const auto colon = end_of_time(line, sample.time);
    if (!colon) return std::nullopt;

    std::string_view before = line.substr(0, *colon);
    take_last(before);  // the time
    std::string_view word = take_last(before);
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') {
        const auto cpu = schema::number_of<int>(word.substr(1, word.size() - 2));
        if (!cpu || *cpu < 0) return std::nullopt;
        sample.cpu = *cpu;
        word = take_last(before);
    }
    const std::size_t slash = word.find('/');
    const auto tid = schema::number_of<std::int64_t>(slash == word.npos ? word : word.substr(slash + 1));
    if (!tid || *tid < 0) return std::nullopt;
    sample.tid = *tid;
    if (slash != word.npos) {
        const auto pid = schema::number_of<std::int64_t>(word.substr(0, slash));
        if (!pid || *pid < 0) return std::nullopt;
        sample.pid = *pid;
    }
    sample.program = trimmed(before);

    std::string_view after = trimmed(line.substr(*colon + 1));
    if (const std::size_t blank = after.find_first_of(kBlank); blank != after.npos) {
        const auto period = schema::number_of<std::int64_t>(after.substr(0, blank));
        if (period && *period < 0) return std::nullopt;
        if (period) {
            sample.period = *period;
            after = trimmed(after.substr(blank));
        }
    }
    // "cpu-clock:u:", "cpu/cycles/P:", "sched:sched_switch:"; a blank or the end of the line follows the
    // colon.
    const std::size_t blank = std::min(after.find_first_of(kBlank), after.size());
    if (blank < 2 || after[blank - 1] != ':') return std::nullopt;
    sample.event = after.substr(0, blank - 1);
    sample.rest = trimmed(after.substr(blank));
    const std::size_t modifiers = sample.event.rfind(':');
    if (modifiers != sample.event.npos && modifiers > 0 &&
        sample.event.substr(modifiers + 1).find_first_not_of("ukhHGpPSDIWe") == sample.event.npos)
        sample.event = sample.event.substr(0, modifiers);
    return sample;
}

std::optional<std::string> read_perf_frame(std::string_view line) {
    std::string_view text = trimmed(line);
    const std::size_t blank = text.find_first_of(kBlank);
    const std::string_view address = text.substr(0, blank);
    if (blank == text.npos || address.find_first_not_of("0123456789abcdef") != address.npos)
        return std::nullopt;
    text = trimmed(text.substr(blank));
    std::string_view module;
    if (text.ends_with(')')) {
        const std::size_t open = text.rfind(" (");
        if (open != text.npos) {
            module = text.substr(open + 2, text.size() - open - 3);
            text = trimmed(text.substr(0, open));
        } else if (text.front() == '(') {  // the symbol was left out
            module = text.substr(1, text.size() - 2);
            text = "[unknown]";
        }
    }
    const std::size_t offset = text.rfind("+0x");
    if (offset != text.npos && offset > 0 &&
        text.find_first_not_of("0123456789abcdef", offset + 3) == text.npos)
        text = text.substr(0, offset);
    if (const std::size_t slash = module.rfind('/'); slash != module.npos && !module.starts_with('['))
        module = module.substr(slash + 1);
    if (text.empty()) return std::nullopt;
    std::string frame(text);
    if (!module.empty()) frame.append(" (").append(module).append(")");
    return frame;
}

}  // namespace shardscope::traces::importer
