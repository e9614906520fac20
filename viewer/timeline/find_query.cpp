// See find_query.h.
#include "viewer/timeline/find_query.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/text.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
    {{"ns", 1}, {"us", 1e3}, {"\u00b5s", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

// "10us", "1.5ms" in nanoseconds.
std::optional<double> time_in(std::string_view text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = traces::schema::number_of<double>(text.substr(0, digits));
    if (!number) return std::nullopt;
    for (const auto& [unit, ns] : kUnits) {
        if (text.substr(digits) == unit) return *number * ns;
    }
    return std::nullopt;
}

void duration(FindQuery& query, std::string_view word) {
    std::string_view rest = word.substr(3);
    const bool more = rest.front() == '>';
    rest.remove_prefix(1);
    const bool equal = !rest.empty() && rest.front() == '=';
    if (equal) rest.remove_prefix(1);
    const auto ns = time_in(rest);
    if (!ns || *ns > 9e18) {
        query.wrong =
            fmt::format("{} is not a limit of durations; write it as dur>10us, with ns, us, ms or s.", word);
        return;
    }
    if (more) {
        query.shortest = static_cast<std::int64_t>(equal ? std::ceil(*ns) : std::floor(*ns) + 1);
    } else {
        query.longest = static_cast<std::int64_t>(equal ? std::floor(*ns) : std::ceil(*ns) - 1);
    }
}

void ranks(FindQuery& query, std::string_view list) {
    for (std::string_view left = list;;) {
        const std::size_t comma = left.find(',');
        const auto number = traces::schema::number_of<int>(left.substr(0, comma));
        if (!number || *number < 0) {
            query.wrong = fmt::format("rank:{} is not a rank; write it as rank:3 or rank:0,3.", list);
            return;
        }
        query.ranks.push_back(*number);
        if (comma == std::string_view::npos) return;
        left.remove_prefix(comma + 1);
    }
}

// Whether the word is a filter; it is then taken into the query.
bool take_filter(FindQuery& query, std::string_view word) {
    if (word.starts_with("dur<") || word.starts_with("dur>")) {
        duration(query, word);
        return true;
    }
    const std::array<std::pair<std::string_view, std::vector<std::string>*>, 4> keys = {
        {{"kind:", &query.kinds}, {"unit:", &query.units}, {"module:", &query.modules}, {"rank:", nullptr}}};
    for (const auto& [key, values] : keys) {
        if (!word.starts_with(key) || word.substr(key.size()).starts_with(':')) continue;
        const std::string_view value = word.substr(key.size());
        if (value.empty()) {
            query.wrong = fmt::format("{} needs a value.", key);
        } else if (values == nullptr) {
            ranks(query, value);
        } else {
            values->emplace_back(value);
        }
        return true;
    }
    return false;
}

}  // namespace

FindQuery parse_find(std::string_view text) {
    FindQuery query;
    const auto add = [&](std::string_view word) {
        if (!query.text.empty()) query.text += ' ';
        query.text += word;
    };
    while (!text.empty()) {
        if (text.front() == ' ') {
            text.remove_prefix(1);
            continue;
        }
        std::size_t end = 0;
        if (text.front() == '"' && (end = text.find('"', 1)) != std::string_view::npos) {
            add(text.substr(1, end - 1));
            text.remove_prefix(end + 1);
            continue;
        }
        const std::string_view word = text.substr(0, text.find(' '));
        if (!take_filter(query, word)) add(word);
        text.remove_prefix(word.size());
    }
    return query;
}

std::string quoted(std::string_view name) {
    const FindQuery plain = parse_find(name);
    if (plain.text == name && !plain.has_filters() && plain.wrong.empty()) return std::string(name);
    return fmt::format("\"{}\"", name);
}

}  // namespace shardscope::viewer::timeline
