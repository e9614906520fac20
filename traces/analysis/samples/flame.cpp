// See flame.h: equal stacks are summed first, since there are far fewer stacks than samples.
#include "traces/analysis/samples/flame.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// The name of a thread, and a stack.
using StackKey = std::pair<std::string_view, schema::StringId>;
struct Sum {
    std::int64_t weight = 0, samples = 0;
};

// Whether a sample is selected.
class SelectedSamples {
  public:
    SelectedSamples(const store::Trace& trace, const Selection& selection)
        : trace_(trace),
          time_(selected_time(selection)),
          by_step_(selection.first_step || selection.last_step),
          by_rank_(selection.rank.has_value()) {
        for (const store::RankIndex rank : selected_ranks(trace, selection)) ranks_.insert(rank.at());
        if (by_step_) hosts_ = selected_host_times(trace, find_steps(trace), selection);
    }

    bool has(std::size_t sample) const {
        const std::int64_t time = trace_.samples.time[sample];
        if (time < time_.start || time >= time_.end) return false;
        const store::RankIndex rank = trace_.threads[trace_.samples.thread[sample]].rank;
        if (!rank.known()) return !by_rank_ && !by_step_;
        if (!ranks_.contains(rank.at())) return false;
        if (!by_step_) return true;
        const IntervalSet& host = hosts_[rank.at()];
        const auto after = std::upper_bound(host.begin(), host.end(), time,
                                            [](std::int64_t t, const Interval& i) { return t < i.start; });
        return after != host.begin() && time < std::prev(after)->end;
    }

  private:
    const store::Trace& trace_;
    Interval time_;
    bool by_step_, by_rank_;
    std::unordered_set<std::size_t> ranks_;
    std::vector<IntervalSet> hosts_;
};

// Calls visit(frame) for each frame, the innermost first.
template <typename Visit>
void each_frame(std::string_view stack, Visit visit) {
    while (!stack.empty()) {
        const std::size_t end = std::min(stack.find('\n'), stack.size());
        visit(stack.substr(0, end));
        stack.remove_prefix(std::min(end + 1, stack.size()));
    }
}

class FlameTree {
  public:
    FlameTree() : nodes_(1) {}

    void add(std::string_view thread, std::string_view stack, const Sum& sum) {
        frames_.clear();
        each_frame(stack, [&](std::string_view frame) { frames_.push_back(frame); });
        frames_.push_back(thread);
        int at = 0;
        pass(at, sum);
        for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
            at = child(at, *frame);
            pass(at, sum);
        }
        nodes_[static_cast<std::size_t>(at)].self += sum.weight;
    }

    std::vector<FlameNode> take() {
        for (FlameNode& node : nodes_) {
            std::sort(node.children.begin(), node.children.end(), [&](int a, int b) {
                const FlameNode &x = nodes_[static_cast<std::size_t>(a)],
                                &y = nodes_[static_cast<std::size_t>(b)];
                return std::pair(-x.total, x.frame) < std::pair(-y.total, y.frame);
            });
        }
        return std::move(nodes_);
    }

  private:
    void pass(int node, const Sum& sum) {
        nodes_[static_cast<std::size_t>(node)].total += sum.weight;
        nodes_[static_cast<std::size_t>(node)].samples += sum.samples;
    }
    int child(int parent, std::string_view frame) {
        const auto [it, is_new] = known_.try_emplace({parent, frame}, static_cast<int>(nodes_.size()));
        if (is_new) {
            nodes_.push_back({.frame = frame,
                              .depth = nodes_[static_cast<std::size_t>(parent)].depth + 1,
                              .children = {}});
            nodes_[static_cast<std::size_t>(parent)].children.push_back(it->second);
        }
        return it->second;
    }

    std::vector<FlameNode> nodes_;
    std::map<std::pair<int, std::string_view>, int> known_;
    std::vector<std::string_view> frames_;
};

// The event to report: the named one, else that with most samples.
std::optional<schema::StringId> chosen_event(const store::Trace& trace,
                                             const std::map<schema::StringId, std::int64_t>& counts,
                                             std::string_view name) {
    std::optional<schema::StringId> chosen;
    for (const auto& [event, count] : counts) {
        if (name.empty() ? !chosen || count > counts.at(*chosen) : trace.strings[event] == name)
            chosen = event;
    }
    return chosen;
}

}  // namespace

SamplesReport samples_report(const store::Trace& trace, const Selection& selection, std::string_view event,
                             std::size_t most) {
    const store::Samples& samples = trace.samples;
    const SelectedSamples selected(trace, selection);
    std::map<schema::StringId, std::int64_t> counts;
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (selected.has(i)) ++counts[samples.event[i]];
    SamplesReport report;
    const auto chosen = chosen_event(trace, counts, event);
    for (const auto& [other, count] : counts)
        if (!chosen || other != *chosen) report.other_events.emplace_back(trace.strings[other]);
    std::sort(report.other_events.begin(), report.other_events.end());
    if (!chosen) return report;
    report.event = trace.strings[*chosen];
    report.is_time = report.event == "cpu-clock" || report.event == "task-clock";
    report.samples = counts.at(*chosen);

    std::map<StackKey, Sum> stacks;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples.event[i] != *chosen || !selected.has(i)) continue;
        Sum& sum = stacks[{trace.threads[samples.thread[i]].name, samples.stack[i]}];
        sum.weight += samples.weight[i];
        ++sum.samples;
    }
    FlameTree tree;
    std::unordered_map<std::string_view, FunctionTime> functions;
    std::unordered_set<std::string_view> seen;
    for (const auto& entry : stacks) {
        const Sum& sum = entry.second;
        const std::string_view stack = trace.strings[entry.first.second];
        tree.add(entry.first.first, stack, sum);
        report.total += sum.weight;
        seen.clear();
        each_frame(stack, [&](std::string_view frame) {
            FunctionTime& function = functions.try_emplace(frame, FunctionTime{.name = frame}).first->second;
            if (seen.empty()) {
                function.self += sum.weight;
                function.samples += sum.samples;
            }
            if (seen.insert(frame).second) function.total += sum.weight;
        });
    }
    report.tree = tree.take();
    const double all = report.total > 0 ? static_cast<double>(report.total) : 1;
    for (auto& [name, function] : functions) {
        function.is_time = report.is_time;
        function.self_percent = 100 * static_cast<double>(function.self) / all;
        function.total_percent = 100 * static_cast<double>(function.total) / all;
        report.functions.push_back(function);
    }
    std::sort(report.functions.begin(), report.functions.end(),
              [](const FunctionTime& a, const FunctionTime& b) {
                  return std::tuple(-a.self, -a.total, a.name) < std::tuple(-b.self, -b.total, b.name);
              });
    report.distinct = static_cast<std::int64_t>(report.functions.size());
    if (most > 0 && report.functions.size() > most) report.functions.resize(most);
    return report;
}

std::string folded_stacks(const SamplesReport& report) {
    std::string text;
    if (report.tree.empty()) return text;
    struct Place {
        int node = 0;
        std::string path;
    };
    std::vector<Place> todo = {{0, ""}};
    while (!todo.empty()) {
        const Place place = std::move(todo.back());
        todo.pop_back();
        const FlameNode& node = report.tree[static_cast<std::size_t>(place.node)];
        if (node.self > 0) text += place.path + ' ' + std::to_string(node.self) + '\n';
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
            // The format has no way to write a semicolon within a frame.
            std::string frame(report.tree[static_cast<std::size_t>(*child)].frame);
            std::replace(frame.begin(), frame.end(), ';', ':');
            if (frame.empty()) frame = "[unknown]";
            todo.push_back({*child, place.path.empty() ? frame : place.path + ';' + frame});
        }
    }
    return text;
}

Fields<FunctionTime> function_fields() {
    using F = FunctionTime;
    static constexpr Field<F> kFields[] = {
        {{"function", "Function", Unit::text, "The function and, in parentheses, its library or program."},
         value_of<&F::name>},
        {{"self_percent", "Self", Unit::percent,
          "The share of the samples' weight in which it is innermost."},
         value_of<&F::self_percent>},
        {{"total_percent", "Total", Unit::percent, "The share in which it is anywhere in the stack."},
         value_of<&F::total_percent>},
        {{"self_us", "Self", Unit::us,
          "Processor time of its own; unknown where the profiler counted no time."},
         [](const F& f) { return f.is_time ? us_cell(static_cast<double>(f.self)) : store::Cell(); }},
        {{"total_us", "Total", Unit::us, "The same with what it called."},
         [](const F& f) { return f.is_time ? us_cell(static_cast<double>(f.total)) : store::Cell(); }},
        {{"self_weight", "Self weight", Unit::count, "The sum of the weights in which it is innermost.",
          in_programs},
         value_of<&F::self>},
        {{"total_weight", "Total weight", Unit::count, "The sum in which it is anywhere in the stack.",
          in_programs},
         value_of<&F::total>},
        {{"samples", "Samples", Unit::count, "Samples in which it is innermost."}, value_of<&F::samples>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
