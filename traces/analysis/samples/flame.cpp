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
#include "traces/schema/enums.h"
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

// Numbers names from 0 in order of appearance.
class Numbers {
  public:
    int of(std::string_view name) {
        return known_.try_emplace(name, static_cast<int>(known_.size())).first->second;
    }

  private:
    std::unordered_map<std::string_view, int> known_;
};

class FlameTree {
  public:
    FlameTree() : nodes_(1) {}

    void add(std::string_view thread, std::string_view stack, const Sum& sum) {
        frames_.clear();
        each_frame(stack, [&](std::string_view frame) { frames_.emplace_back(frame, numbers_.of(frame)); });
        add_functions(sum);
        pass(0, sum);
        int at = child(0, thread, threads_.of(thread));
        pass(at, sum);
        for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
            at = child(at, frame->first, frame->second);
            pass(at, sum);
        }
        node(at).self += sum.weight;
    }

    std::vector<FlameNode> take_nodes() {
        for (FlameNode& of : nodes_) {
            std::sort(of.children.begin(), of.children.end(), [&](int a, int b) {
                const FlameNode &x = node(a), &y = node(b);
                return std::pair(-x.total, x.frame) < std::pair(-y.total, y.frame);
            });
        }
        return std::move(nodes_);
    }
    std::vector<FunctionTime> take_functions() { return std::move(functions_); }

  private:
    FlameNode& node(int i) { return nodes_[static_cast<std::size_t>(i)]; }
    void pass(int at, const Sum& sum) {
        node(at).total += sum.weight;
        node(at).samples += sum.samples;
    }
    // The threads are the root's children; all other nodes are of functions.
    int child(int parent, std::string_view frame, int number) {
        const std::uint64_t key =
            static_cast<std::uint64_t>(parent) << 32 | static_cast<std::uint32_t>(number);
        const auto [it, is_new] = known_.try_emplace(key, static_cast<int>(nodes_.size()));
        if (is_new) {
            nodes_.push_back(
                {.frame = frame, .depth = node(parent).depth + 1, .parent = parent, .children = {}});
            node(parent).children.push_back(it->second);
        }
        return it->second;
    }
    void add_functions(const Sum& sum) {
        ++stacks_;
        for (std::size_t i = 0; i < frames_.size(); ++i) {
            const auto number = static_cast<std::size_t>(frames_[i].second);
            if (number == functions_.size()) {
                functions_.push_back({.name = frames_[i].first});
                last_stack_.push_back(0);
            }
            FunctionTime& function = functions_[number];
            if (i == 0) {
                function.self += sum.weight;
                function.samples += sum.samples;
            }
            if (std::exchange(last_stack_[number], stacks_) != stacks_) function.total += sum.weight;
        }
    }

    std::vector<FlameNode> nodes_;
    std::unordered_map<std::uint64_t, int> known_;          // by parent and number
    std::vector<std::pair<std::string_view, int>> frames_;  // of one stack, with their numbers
    Numbers numbers_, threads_;
    std::vector<FunctionTime> functions_;  // by number
    std::vector<std::size_t> last_stack_;  // that has it, by number; from 1
    std::size_t stacks_ = 0;
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

// Those with samples, in the order of the report.
std::vector<ThreadSamples> sampled(std::vector<ThreadSamples> threads) {
    std::erase_if(threads, [](const ThreadSamples& thread) { return thread.samples == 0; });
    std::sort(threads.begin(), threads.end(), [](const ThreadSamples& a, const ThreadSamples& b) {
        return std::pair(-a.weight, a.thread) < std::pair(-b.weight, b.thread);
    });
    return threads;
}

}  // namespace

bool SampleFilter::keeps(const store::HostThread& of) const {
    return (!process || (of.global_tid & schema::kPidMask) == *process) &&
           (!thread || of.global_tid == *thread);
}

SamplesReport samples_report(const store::Trace& trace, const Selection& selection,
                             const SampleFilter& filter, std::size_t most) {
    const store::Samples& samples = trace.samples;
    const SelectedSamples selected(trace, selection);
    std::map<schema::StringId, std::int64_t> counts;
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (selected.has(i)) ++counts[samples.event[i]];
    SamplesReport report;
    const auto chosen = chosen_event(trace, counts, filter.event);
    for (const auto& [other, count] : counts)
        if (!chosen || other != *chosen) report.other_events.emplace_back(trace.strings[other]);
    std::sort(report.other_events.begin(), report.other_events.end());
    if (!chosen) return report;
    report.event = trace.strings[*chosen];
    report.is_time = report.event == "cpu-clock" || report.event == "task-clock";

    std::vector<ThreadSamples> threads(trace.threads.size());
    for (std::size_t t = 0; t < threads.size(); ++t) threads[t].thread = t;
    std::map<StackKey, Sum> stacks;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples.event[i] != *chosen || !selected.has(i)) continue;
        ThreadSamples& thread = threads[samples.thread[i]];
        thread.weight += samples.weight[i];
        ++thread.samples;
        const store::HostThread& of = trace.threads[thread.thread];
        if (!filter.keeps(of)) continue;
        Sum& sum = stacks[{of.name, samples.stack[i]}];
        sum.weight += samples.weight[i];
        ++sum.samples;
    }
    report.threads = sampled(std::move(threads));
    if (stacks.empty()) return report;
    FlameTree tree;
    for (const auto& [key, sum] : stacks) {
        tree.add(key.first, trace.strings[key.second], sum);
        report.total += sum.weight;
        report.samples += sum.samples;
    }
    report.tree = tree.take_nodes();
    report.functions = tree.take_functions();
    const double all = report.total > 0 ? static_cast<double>(report.total) : 1;
    for (FunctionTime& function : report.functions) {
        function.is_time = report.is_time;
        function.self_percent = 100 * static_cast<double>(function.self) / all;
        function.total_percent = 100 * static_cast<double>(function.total) / all;
    }
    std::sort(report.functions.begin(), report.functions.end(),
              [](const FunctionTime& a, const FunctionTime& b) {
                  return std::tuple(-a.self, -a.total, a.name) < std::tuple(-b.self, -b.total, b.name);
              });
    report.distinct = static_cast<std::int64_t>(report.functions.size());
    if (most > 0 && report.functions.size() > most) report.functions.resize(most);
    return report;
}

FlameBoxes flame_boxes(const std::vector<FlameNode>& tree, int top, double width, double narrowest) {
    FlameBoxes result;
    const auto node = [&](int i) -> const FlameNode& { return tree[static_cast<std::size_t>(i)]; };
    const double scale = width / std::max<double>(static_cast<double>(node(top).total), 1);
    result.boxes.push_back({top, 0, width});
    for (std::size_t i = 0; i < result.boxes.size(); ++i) {
        const FlameBox box = result.boxes[i];
        const FlameNode& caller = node(box.node);
        result.deepest = caller.depth - node(top).depth;
        double x = box.x;
        std::int64_t rest = caller.total - caller.self;  // of the callees that follow, the largest first
        for (std::size_t c = 0; c < caller.children.size(); ++c) {
            const std::int64_t total = node(caller.children[c]).total;
            const double wide = static_cast<double>(total) * scale;
            if (wide < narrowest) {
                const auto callees = static_cast<std::int64_t>(caller.children.size() - c);
                result.narrow.push_back({box.node, x, static_cast<double>(rest) * scale, callees, rest});
                result.hidden += callees;
                break;
            }
            result.boxes.push_back({caller.children[c], x, wide});
            x += wide;
            rest -= total;
        }
    }
    return result;
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
