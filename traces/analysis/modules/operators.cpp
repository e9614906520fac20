// See operators.h. One pass over the ranges finds the operator of each and subtracts operators from those
// around them, one over the calls subtracts these, one over the device events adds theirs; then the ranges
// are summed up by name.
#include "traces/analysis/modules/operators.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

namespace {

// The list at the start of `text`, to its closing bracket; empty if there is none or it is not closed.
std::string_view leading_list(std::string_view text) {
    if (!text.starts_with('[')) return {};
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') ++i;
            if (c == '"') quoted = false;
            continue;
        }
        if (c == '"') quoted = true;
        if (c == '[') ++depth;
        if (c == ']' && --depth == 0) return text.substr(0, i + 1);
    }
    return {};
}

// The text after `key`, without leading blanks; empty if the key is absent.
std::string_view behind(std::string_view text, std::string_view key) {
    const auto at = text.find(key);
    if (at == text.npos) return {};
    text.remove_prefix(at + key.size());
    const auto value = text.find_first_not_of(" \t\n\r");
    return value == text.npos ? std::string_view() : text.substr(value);
}

}  // namespace

OperatorText operator_text(std::string_view range) {
    const auto end = std::min({range.find(", seq = "), range.find(", op_id = "), range.find(", sizes = ")});
    if (end == range.npos) return {.name = range, .shapes = {}};
    return {.name = range.substr(0, end), .shapes = leading_list(behind(range.substr(end), ", sizes ="))};
}

std::string_view input_shapes(std::string_view detail) {
    // Capitalization differs between versions of the format.
    for (const std::string_view key : {R"("Input Dims":)", R"("Input dims":)"}) {
        if (const std::string_view list = leading_list(behind(detail, key)); !list.empty()) return list;
    }
    return {};
}

namespace {

constexpr std::int32_t kNoName = -1;

// By row of HostRanges. Only the rows of operators are used, except in `innermost`.
struct OperatorTimes {
    std::vector<std::int32_t> innermost;  // the operator that a range is, or is in
    std::vector<std::int64_t> host_self, covered_until, device_self, device_total;
};

// The kinds of range that are operators in this trace.
std::vector<bool> operator_kinds(const store::Trace& trace) {
    const auto& kinds = trace.ranges.kind;
    std::vector<bool> is(store::kRangeKinds, false);
    const auto set = [&](store::RangeKind kind) { is[static_cast<std::size_t>(kind)] = true; };
    set(store::RangeKind::operation);
    if (std::find(kinds.begin(), kinds.end(), store::RangeKind::operation) == kinds.end()) {
        for (const store::RangeKind k :
             {store::RangeKind::annotation, store::RangeKind::backward, store::RangeKind::communication})
            set(k);
    }
    return is;
}

// Subtracts [start, end) from the operator's own time, unless already subtracted. Calls come in order of
// start, so only time after the latest end so far is new.
void take(OperatorTimes& times, const store::HostRanges& ranges, std::int32_t from, std::int64_t start,
          std::int64_t end) {
    const auto i = static_cast<std::size_t>(from);
    start = std::max(start, times.covered_until[i]);
    end = std::min(end, ranges.end[i]);
    if (end <= start) return;
    times.host_self[i] -= end - start;
    times.covered_until[i] = end;
}

OperatorTimes operator_times(const store::Trace& trace) {
    const store::HostRanges& ranges = trace.ranges;
    const std::vector<bool> is_operator = operator_kinds(trace);
    OperatorTimes times;
    times.innermost.resize(ranges.size());
    times.host_self.resize(ranges.size());
    times.covered_until.assign(ranges.start.begin(), ranges.start.end());
    times.device_self.assign(ranges.size(), 0);

    // Merges child operators and runtime calls, both sorted by start.
    const store::RuntimeCalls& calls = trace.runtime;
    std::size_t call = 0;
    const auto take_calls = [&](std::int64_t until) {
        for (; call < calls.size() && calls.start[call] < until; ++call) {
            if (calls.range[call] < 0) continue;
            const std::int32_t around = times.innermost[static_cast<std::size_t>(calls.range[call])];
            if (around >= 0) take(times, ranges, around, calls.start[call], calls.end[call]);
        }
    };
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        take_calls(ranges.start[i]);
        const std::int32_t parent = ranges.parent[i];
        const std::int32_t around = parent >= 0 ? times.innermost[static_cast<std::size_t>(parent)] : kNoName;
        times.innermost[i] = around;
        if (!is_operator[static_cast<std::size_t>(ranges.kind[i])]) continue;
        times.innermost[i] = static_cast<std::int32_t>(i);
        times.host_self[i] = ranges.end[i] - ranges.start[i];
        if (around >= 0) take(times, ranges, around, ranges.start[i], ranges.end[i]);
    }
    take_calls(INT64_MAX);

    const store::DeviceEvents& device = trace.device;
    for (std::size_t e = 0; e < device.size(); ++e) {
        if (device.range[e] < 0 || schema::is_of_file(device.copy_kind[e])) continue;
        const std::int32_t at = times.innermost[static_cast<std::size_t>(device.range[e])];
        if (at >= 0) times.device_self[static_cast<std::size_t>(at)] += device.end[e] - device.start[e];
    }
    // An operator comes before those inside it.
    times.device_total = times.device_self;
    for (std::size_t i = ranges.size(); i-- > 0;) {
        const std::int32_t parent = ranges.parent[i];
        if (parent < 0 || times.innermost[i] != static_cast<std::int32_t>(i)) continue;
        const std::int32_t around = times.innermost[static_cast<std::size_t>(parent)];
        if (around >= 0) times.device_total[static_cast<std::size_t>(around)] += times.device_total[i];
    }
    return times;
}

// Numbers the (name, shapes) of operators, parsing each text once.
class Groups {
  public:
    Groups(const store::Trace& trace, bool by_shape)
        : trace_(trace),
          by_shape_(by_shape),
          text_of_name_(trace.strings.size(), kNoName),
          text_of_detail_(by_shape ? trace.strings.size() : 0, kNoName) {}

    std::size_t of(std::size_t range) {
        const auto name = static_cast<std::size_t>(trace_.ranges.name[range]);
        if (text_of_name_[name] < 0) {
            const OperatorText text = operator_text(trace_.strings[trace_.ranges.name[range]]);
            text_of_name_[name] = group({text.name, by_shape_ ? text.shapes : std::string_view()});
        }
        const std::int32_t named = text_of_name_[name];
        if (!by_shape_ || trace_.ranges.detail.empty()) return static_cast<std::size_t>(named);
        const std::int32_t shapes = shapes_of(trace_.ranges.detail[range]);
        if (shapes == 0) return static_cast<std::size_t>(named);
        const auto key = static_cast<std::uint64_t>(named) << 32 | static_cast<std::uint32_t>(shapes);
        const auto [at, added] = with_shapes_.try_emplace(key, 0);
        if (added) {
            at->second = group(
                {groups_[static_cast<std::size_t>(named)].first, shapes_[static_cast<std::size_t>(shapes)]});
        }
        return static_cast<std::size_t>(at->second);
    }
    std::size_t size() const { return groups_.size(); }
    const std::pair<std::string_view, std::string_view>& operator[](std::size_t g) const {
        return groups_[g];
    }

  private:
    using Text = std::pair<std::string_view, std::string_view>;  // name, shapes
    struct TextHash {
        std::size_t operator()(const Text& t) const {
            const std::hash<std::string_view> hash;
            return hash(t.first) * 31 + hash(t.second);
        }
    };

    std::int32_t group(const Text& text) {
        const auto [at, added] = by_text_.try_emplace(text, static_cast<std::int32_t>(groups_.size()));
        if (added) groups_.push_back(text);
        return at->second;
    }

    // Number of the shapes in a detail; 0: none.
    std::int32_t shapes_of(schema::StringId detail) {
        std::int32_t& known = text_of_detail_[static_cast<std::size_t>(detail)];
        if (known >= 0) return known;
        const std::string_view text = input_shapes(trace_.strings[detail]);
        const auto next = static_cast<std::int32_t>(shapes_.size());
        const auto [at, added] = by_shapes_.try_emplace(text, text.empty() ? 0 : next);
        if (added && !text.empty()) shapes_.push_back(text);
        return known = at->second;
    }

    const store::Trace& trace_;
    bool by_shape_;
    std::vector<std::int32_t> text_of_name_, text_of_detail_;  // by string: group, shapes
    std::vector<Text> groups_;
    std::unordered_map<Text, std::int32_t, TextHash> by_text_;
    std::vector<std::string_view> shapes_ = {""};
    std::unordered_map<std::string_view, std::int32_t> by_shapes_;
    std::unordered_map<std::uint64_t, std::int32_t> with_shapes_;
};

bool more(const OperatorStats& a, const OperatorStats& b) {
    if (a.device_self != b.device_self) return a.device_self > b.device_self;
    if (a.host_self != b.host_self) return a.host_self > b.host_self;
    return std::pair(a.name, a.shapes) < std::pair(b.name, b.shapes);
}

RankOperators finish(std::vector<OperatorStats> all, int rank, std::size_t most) {
    RankOperators result;
    result.rank = rank;
    std::erase_if(all, [](const OperatorStats& o) { return o.calls == 0; });
    result.distinct = static_cast<std::int64_t>(all.size());
    for (const OperatorStats& o : all) {
        result.calls += o.calls;
        result.host_self += o.host_self;
        result.device_self += o.device_self;
    }
    std::sort(all.begin(), all.end(), more);
    if (most > 0 && all.size() > most) all.resize(most);
    for (OperatorStats& o : all) {
        if (result.device_self > 0)
            o.device_percent =
                100 * static_cast<double>(o.device_self) / static_cast<double>(result.device_self);
    }
    result.operators = std::move(all);
    return result;
}

}  // namespace

OperatorsReport operators_report(const store::Trace& trace, const Selection& selection, bool by_shape,
                                 std::size_t most) {
    const store::HostRanges& ranges = trace.ranges;
    const OperatorTimes times = operator_times(trace);
    const TraceSteps steps = find_steps(trace);
    const std::vector<IntervalSet> selected = selected_host_times(trace, steps, selection);
    Groups groups(trace, by_shape);
    std::vector<std::vector<OperatorStats>> by_rank(trace.ranks.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const store::RankIndex rank = trace.threads[ranges.thread[i]].rank;
        if (times.innermost[i] != static_cast<std::int32_t>(i) || !rank.known()) continue;
        const std::size_t at = rank.at();
        if (!holds(selected[at], ranges.start[i])) continue;
        const std::size_t group = groups.of(i);
        if (group >= by_rank[at].size()) by_rank[at].resize(groups.size());
        OperatorStats& stats = by_rank[at][group];
        ++stats.calls;
        stats.host_total += ranges.end[i] - ranges.start[i];
        stats.host_self += times.host_self[i];
        stats.device_total += times.device_total[i];
        stats.device_self += times.device_self[i];
    }
    OperatorsReport report{.by_shape = by_shape, .ranks = {}};
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        auto& all = by_rank[r.at()];
        for (std::size_t g = 0; g < all.size(); ++g) std::tie(all[g].name, all[g].shapes) = groups[g];
        report.ranks.push_back(finish(std::move(all), trace.ranks[r.at()].number, most));
    }
    return report;
}

std::vector<std::uint32_t> operator_calls(const store::Trace& trace, const Selection& selection,
                                          std::string_view name, std::string_view shapes, bool by_shape) {
    const store::HostRanges& ranges = trace.ranges;
    const std::vector<bool> is_operator = operator_kinds(trace);
    const TraceSteps steps = find_steps(trace);
    const std::vector<IntervalSet> selected = selected_host_times(trace, steps, selection);
    Groups groups(trace, by_shape);
    std::vector<std::uint32_t> calls;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const store::RankIndex rank = trace.threads[ranges.thread[i]].rank;
        if (!is_operator[static_cast<std::size_t>(ranges.kind[i])] || !rank.known()) continue;
        if (!holds(selected[rank.at()], ranges.start[i])) continue;
        const auto& group = groups[groups.of(i)];
        if (group.first == name && group.second == shapes) calls.push_back(static_cast<std::uint32_t>(i));
    }
    return calls;
}

Fields<OperatorStats> operator_fields(bool by_shape) {
    using O = OperatorStats;
    static constexpr Field<O> kFields[] = {
        {{"name", "Operator", Unit::text, "The name of the operator's range."}, value_of<&O::name>},
        {{"shapes", "Shapes", Unit::text, "The sizes of the operator's inputs.", in_csv},
         value_of<&O::shapes>},
        {{"shapes", "Shapes", Unit::text, "The sizes of the operator's inputs."}, value_of<&O::shapes>},
        {{"calls", "Calls", Unit::count, "Calls that start in the current selection."}, value_of<&O::calls>},
        {{"host_us", "Host total", Unit::us, "The calls' durations on the host, with operators inside."},
         micros_of<&O::host_total>},
        {{"host_self_us", "Host self", Unit::us,
          "Without operators inside and without calls of the runtime."},
         micros_of<&O::host_self>},
        {{"device_us", "Device total", Unit::us, "Device work launched inside, in operators inside too."},
         micros_of<&O::device_total>},
        {{"device_self_us", "Device self", Unit::us,
          "Device work launched inside, but not in an operator inside."},
         micros_of<&O::device_self>},
        {{"device_percent", "Device", Unit::percent, "Share of the device time that all operators launched.",
          in_table},
         value_of<&O::device_percent>},
    };
    // The first three fields are the name, the shapes for CSV only, and the shapes for every output.
    static const auto choose = [](std::size_t left_out) {
        std::vector<Field<O>> fields(std::begin(kFields), std::end(kFields));
        fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(left_out));
        return fields;
    };
    static const std::vector<Field<O>> with_shapes = choose(1), without_shapes = choose(2);
    return by_shape ? with_shapes : without_shapes;
}

}  // namespace shardscope::traces::analysis
