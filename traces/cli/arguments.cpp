#include "traces/cli/arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/wal_damage.h"

namespace shardscope::traces::cli {

namespace {

// Splits "A:B" at the colon; without a colon, both sides are the whole text.
std::pair<std::string_view, std::string_view> sides(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return {text, text};
    return {text.substr(0, colon), text.substr(colon + 1)};
}

std::optional<std::int64_t> parse_step(std::string_view text, const std::string& whole) {
    if (text.empty()) return std::nullopt;
    const auto number = schema::number_of<std::int64_t>(text);
    if (!number) {
        throw UsageError(
            fmt::format("--step {}: \"{}\" is not a step number; write A:B, for example 2:5", whole, text));
    }
    return number;
}

std::optional<std::int64_t> parse_time(std::string_view text, const std::string& whole) {
    if (text.empty()) return std::nullopt;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
        {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
    const auto known =
        std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return u.first == unit; });
    const double ns = known != kUnits.end() ? number * known->second : 0;
    if (error != std::errc() || known == kUnits.end() || !(std::abs(ns) < 9e18)) {
        throw UsageError(fmt::format(
            "--range {}: \"{}\" is not a time; write A:B with ns, us, ms or s, for example 10ms:20ms", whole,
            text));
    }
    return std::llround(ns);
}

}  // namespace

report::Format parse_format(const std::string& text) {
    if (text == "table") return report::Format::table;
    if (text == "json") return report::Format::json;
    if (text == "csv") return report::Format::csv;
    throw UsageError(fmt::format("--format {} is unknown; use table, json or csv", text));
}

std::string options_text(const SelectionText& text) {
    std::string options;
    if (text.rank) options += fmt::format(" --rank {}", *text.rank);
    if (!text.step.empty()) options += " --step " + text.step;
    if (!text.range.empty()) options += " --range " + text.range;
    return options;
}

analysis::Selection parse_selection(const SelectionText& text) {
    analysis::Selection selection{
        .rank = text.rank, .first_step = {}, .last_step = {}, .from_ns = {}, .to_ns = {}};
    if (!text.step.empty()) {
        const auto [first, last] = sides(text.step);
        selection.first_step = parse_step(first, text.step);
        selection.last_step = parse_step(last, text.step);
        if (selection.first_step && selection.last_step && *selection.first_step > *selection.last_step) {
            throw UsageError(
                fmt::format("--step {}: the first step is after the last; swap them", text.step));
        }
    }
    if (!text.range.empty()) {
        if (text.range.find(':') == std::string::npos) {
            throw UsageError(
                fmt::format("--range {} has no end; write A:B, for example 10ms:20ms", text.range));
        }
        const auto [from, to] = sides(text.range);
        selection.from_ns = parse_time(from, text.range);
        selection.to_ns = parse_time(to, text.range);
        if (selection.from_ns && selection.to_ns && *selection.from_ns >= *selection.to_ns) {
            throw UsageError(
                fmt::format("--range {} is empty; the first time must be before the second", text.range));
        }
    }
    return selection;
}

std::optional<double> parse_loss(const std::string& text) {
    if (text.empty()) return std::nullopt;
    const auto loss = schema::number_of<double>(text);
    if (!loss || !std::isfinite(*loss))
        throw UsageError("--to-loss " + text + " is not a number; give a loss, such as 2.5");
    return loss;
}

std::int64_t parse_duration(const std::string& option, const std::string& text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
        {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
    const auto known =
        std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return u.first == unit; });
    const double ns = known != kUnits.end() ? number * known->second : 0;
    if (error != std::errc() || !(ns >= 1 && ns < 9e18)) {
        throw UsageError(fmt::format(
            "{} {}: this is not a time; write a number with ns, us, ms or s, for example 10s", option, text));
    }
    return std::llround(ns);
}

void check_selection(const analysis::Selection& selection, const store::Trace& trace) {
    const auto has_rank = [&](const store::Rank& r) { return r.number == selection.rank; };
    if (selection.rank && std::none_of(trace.ranks.begin(), trace.ranks.end(), has_rank)) {
        throw UsageError(trace.ranks.empty()
                             ? fmt::format("--rank {}: {} has no ranks", *selection.rank, trace.path)
                             : fmt::format("--rank {}: {} has no such rank; it has {} to {}", *selection.rank,
                                           trace.path, trace.ranks.front().number,
                                           trace.ranks.back().number));
    }
    if (!selection.first_step && !selection.last_step) return;
    const auto has_step = [&](const store::Step& s) { return selection.has_step(s.number); };
    if (std::any_of(trace.steps.begin(), trace.steps.end(), has_step)) return;
    if (trace.steps.empty()) {
        throw UsageError(fmt::format("--step: {} has no steps; omit the option", trace.path));
    }
    const auto [first, last] =
        std::minmax_element(trace.steps.begin(), trace.steps.end(),
                            [](const store::Step& a, const store::Step& b) { return a.number < b.number; });
    throw UsageError(
        fmt::format("--step: {} has no such step; it has {} to {}", trace.path, first->number, last->number));
}

std::uint64_t parse_size(const std::string& text, std::string_view option) {
    constexpr std::uint64_t kDefault = std::uint64_t{256} << 30;
    if (text.empty()) return kDefault;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    constexpr std::string_view kUnits = "KMGT";
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    unsigned shift = 0;
    if (unit.size() == 1 && kUnits.find(unit.front()) != kUnits.npos) {
        shift = 10 * (static_cast<unsigned>(kUnits.find(unit.front())) + 1);
        unit = {};
    }
    if (error != std::errc() || !unit.empty() || number == 0 || number > UINT64_MAX >> shift) {
        throw UsageError(fmt::format(
            "{} {}: it is not a size; write a number of bytes, or with K, M, G or T, for example 64G", option,
            text));
    }
    return number << shift;
}

void check_input_or_folder(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) check_input(path);
}

void check_input(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) {
        throw UsageError(fmt::format("{} does not exist; check the path", path));
    }
    if (std::filesystem::is_directory(status)) {
        throw UsageError(fmt::format("{} is a folder; give the trace file in it", path));
    }
    if (const std::string note = store::opening_note(path); !note.empty()) {
        fmt::print(stderr, "shardscope-trace: {}\n", note);
    }
    if (const std::string damage = store::damage_of_wal(path); !damage.empty()) {
        fmt::print(stderr, "shardscope-trace: {}\n", damage);
    }
}

}  // namespace shardscope::traces::cli
