#include "trainer/cli/plan_report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/report/text_table.h"
#include "traces/schema/joined.h"
#include "trainer/job/keys.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer {

namespace {

using planner::Outcome;
using planner::Row;
using traces::Align;
using traces::grouped;

constexpr std::size_t kRestShown = 10;
constexpr double kMB = 1 << 20;

std::string mb(std::int64_t bytes) {
    return grouped(static_cast<double>(bytes) / kMB, 1);
}
std::string ms(double seconds) {
    return grouped(seconds * 1e3, 2);
}

std::string text_of(const Job& job, std::string_view section, std::string_view name) {
    return to_text(find_key(section, name)->get(job));
}

// --- what a row is called by ----------------------------------------------------------------------------

bool is_sharded(const Job& job) {
    return job.parallel.mode == ParallelMode::fsdp;
}

std::string strategy_of(const Job& job) {
    if (job.parallel.mode == ParallelMode::none) return "none";
    if (job.parallel.mode == ParallelMode::ddp) return job.ddp.shard_optimizer ? "ZERO_1" : "ddp";
    const std::string name = text_of(job, "fsdp", "sharding_strategy");
    return job.fsdp.shard_group > 0 ? fmt::format("{} of {}", name, job.fsdp.shard_group) : name;
}

// "root", "module:Block"; "-" where the strategy does not have such a thing.
std::string of_units(const Job& job, std::string_view name) {
    return is_sharded(job) ? text_of(job, "fsdp", name) : "-";
}
std::string of_gathers(const Job& job, std::string_view name) {
    const bool gathers = is_sharded(job) && job.fsdp.sharding_strategy != ShardingStrategy::no_shard;
    return gathers ? text_of(job, "fsdp", name) : "-";
}

struct Column {
    std::string header;
    Align align = Align::left;
    std::function<std::string(const Row&)> cell;
};

std::string yes_no(const std::string& truth) {
    return truth == "true" ? "yes" : truth == "false" ? "no" : truth;
}

// The keys that a search decides.
std::vector<Column> decided_columns() {
    return {
        {"strategy", Align::left, [](const Row& r) { return strategy_of(r.job); }},
        {"wrap", Align::left, [](const Row& r) { return of_units(r.job, "wrap"); }},
        {"offload", Align::left, [](const Row& r) { return yes_no(of_gathers(r.job, "cpu_offload")); }},
        {"checkpointing", Align::left,
         [](const Row& r) { return text_of(r.job, "memory", "activation_checkpointing"); }},
        {"prefetch", Align::left, [](const Row& r) { return of_gathers(r.job, "backward_prefetch"); }},
        {"limiter", Align::left, [](const Row& r) { return yes_no(of_gathers(r.job, "limit_all_gathers")); }},
        {"param", Align::left, [](const Row& r) { return text_of(r.job, "precision", "param"); }},
        {"layout", Align::left, [](const Row& r) { return of_units(r.job, "layout"); }},
        {"batch", Align::right, [](const Row& r) { return text_of(r.job, "data", "batch"); }},
        {"accumulation", Align::right, [](const Row& r) { return text_of(r.job, "train", "accumulation"); }},
    };
}

// The keys that the command line gave several values.
std::vector<Column> given_columns(const std::vector<Row>& rows) {
    static constexpr std::array<std::string_view, 15> kShown = {"fsdp.layout",
                                                                "train.accumulation",
                                                                "parallel.mode",
                                                                "fsdp.sharding_strategy",
                                                                "fsdp.shard_group",
                                                                "fsdp.wrap",
                                                                "fsdp.cpu_offload",
                                                                "memory.activation_checkpointing",
                                                                "ddp.shard_optimizer",
                                                                "fsdp.backward_prefetch",
                                                                "fsdp.limit_all_gathers",
                                                                "precision.param",
                                                                "precision.reduce",
                                                                "data.batch",
                                                                "run.device"};
    std::vector<Column> columns;
    for (const Override& setting : rows.empty() ? std::vector<Override>{} : rows.front().settings) {
        if (std::find(kShown.begin(), kShown.end(), setting.key) != kShown.end()) continue;
        const std::string section = setting.key.substr(0, setting.key.find('.'));
        const std::string word = setting.key.substr(section.size() + 1);
        columns.push_back(
            {word, Align::left, [section, word](const Row& row) { return text_of(row.job, section, word); }});
    }
    return columns;
}

std::vector<Column> figure_columns(const std::vector<const Row*>& rows) {
    const bool tokens =
        std::any_of(rows.begin(), rows.end(), [](const Row* r) { return r->tokens_per_s > 0; });
    const bool priced = std::any_of(rows.begin(), rows.end(), [](const Row* r) { return r->cost > 0; });
    const auto timed = [](const Row& r, const std::string& text) { return r.timed ? text : "-"; };
    std::vector<Column> columns = {
        {"fits", Align::left, [](const Row& r) { return r.fits() ? "yes" : "no"; }},
        {"peak MB", Align::right, [](const Row& r) { return mb(r.peak.bytes); }},
        {"reserved MB", Align::right, [=](const Row& r) { return timed(r, mb(r.reserved)); }},
        {"step ms", Align::right, [=](const Row& r) { return timed(r, ms(r.times.step)); }},
        {"exposed ms", Align::right, [=](const Row& r) { return timed(r, ms(r.times.exposed)); }},
        {tokens ? "tokens/s" : "samples/s", Align::right,
         [=](const Row& r) { return timed(r, grouped(tokens ? r.tokens_per_s : r.samples_per_s, 0)); }},
        {"MFU %", Align::right, [=](const Row& r) { return timed(r, grouped(100 * r.mfu, 1)); }},
    };
    if (priced) {
        columns.push_back({tokens ? "$/M tokens" : "$/M samples", Align::right,
                           [=](const Row& r) { return timed(r, grouped(r.cost, 4)); }});
    }
    return columns;
}

// Columns whose cells are all equal do not distinguish rows: they become text above the tables.
std::vector<Column> that_differ(std::vector<Column> columns, const std::vector<const Row*>& rows,
                                std::vector<std::string>& alike) {
    std::vector<Column> differ;
    for (Column& column : columns) {
        const std::string first = column.cell(*rows.front());
        const bool same = rows.size() > 1 && std::all_of(rows.begin(), rows.end(), [&](const Row* row) {
                              return column.cell(*row) == first;
                          });
        if (same) {
            alike.push_back(fmt::format("{} {}", column.header, first));
        } else {
            differ.push_back(std::move(column));
        }
    }
    return differ;
}

std::string table_of(const std::vector<const Row*>& rows, const std::vector<Column>& columns) {
    std::vector<Align> align = {Align::right};
    std::vector<std::string> header = {"row"};
    for (const Column& column : columns) {
        align.push_back(column.align);
        header.push_back(column.header);
    }
    traces::TextTable table(align);
    table.header(header);
    for (const Row* row : rows) {
        std::vector<std::string> cells = {std::to_string(row->number)};
        for (const Column& column : columns) cells.push_back(column.cell(*row));
        table.row(cells);
    }
    return table.text();
}

std::string counts_line(const PlanResult& result) {
    const auto& rows = result.rows;
    std::string text = fmt::format(
        "{} configuration{} on {}: {} fit, {} do not", rows.size(), rows.size() == 1 ? "" : "s",
        result.cluster, planner::count(rows, Outcome::fits), planner::count(rows, Outcome::too_large));
    if (const auto n = planner::count(rows, Outcome::impossible)) text += fmt::format(", {} cannot be", n);
    if (const auto n = planner::count(rows, Outcome::not_run)) text += fmt::format(", {} were not tried", n);
    return text + fmt::format("; searched in {:.1f} s\n", result.seconds);
}

// The row to take, and those that are as good as far as the model can tell.
std::string best_line(const PlanResult& result) {
    const Row* best = planner::best(result.rows);
    const Row* fastest = planner::fastest(result.rows);
    if (!best || !fastest || !result.complete) return "";
    std::string text = fmt::format(
        "Best: row {}, {} ms per step, {} MB of {} MB reserved; {} from row 1", best->number,
        ms(best->times.step), mb(best->reserved), mb(best->limit),
        best->changes == 0 ? std::string("no key differs")
                           : fmt::format("{} key{} differ{}", best->changes, best->changes == 1 ? "" : "s",
                                         best->changes == 1 ? "s" : ""));
    constexpr std::size_t kNamed = 8;
    const std::vector<const Row*> tied = planner::ties(result.rows);
    if (tied.size() < 2) return text + "\n";
    std::vector<std::string> names;
    for (const Row* row : tied)
        if (row != best && names.size() < kNamed) names.push_back(std::to_string(row->number));
    const std::size_t more = tied.size() - 1 - names.size();
    text += fmt::format(
        "\nThe model cannot distinguish it from the {} other{} within {:.0f} % of the fastest, row {} ({} "
        "ms, {} MB "
        "reserved): {}{}\n",
        tied.size() - 1, tied.size() == 2 ? "" : "s", 100 * planner::kTie, fastest->number,
        ms(fastest->times.step), mb(fastest->reserved), traces::joined(names, ", "),
        more > 0 ? fmt::format(" and {} more", more) : "");
    return text;
}

// Each reason once, with the number of rows that it rules out.
std::string impossible_lines(const std::vector<Row>& rows) {
    std::map<std::string, int> reasons;
    for (const Row& row : rows)
        if (row.outcome == Outcome::impossible) ++reasons[row.reason];
    std::string text;
    for (const auto& [reason, n] : reasons)
        text += fmt::format("{} configuration{} impossible: {}\n", n, n == 1 ? "" : "s", reason);
    return text;
}

}  // namespace

std::string plan_table(const PlanResult& result, const PlanPrint& print) {
    std::string out = counts_line(result) + impossible_lines(result.rows);
    if (result.raised_steps)
        out +=
            "Jobs of fewer than 3 steps are run for 3 steps: their own are over before the memory and the "
            "time of a step are steady\n";
    if (!result.limit_of.empty()) out += fmt::format("What a rank reserves has to fit {}\n", result.limit_of);
    out += best_line(result);
    std::vector<const Row*> front, rest;
    for (const Row& row : result.rows) {
        if (row.front) {
            front.push_back(&row);
        } else if (row.can_be() && (print.all || row.same_as == 0)) {
            rest.push_back(&row);
        }
    }
    std::sort(front.begin(), front.end(), planner::before);
    std::sort(rest.begin(), rest.end(), planner::before);
    const std::size_t all_rest = rest.size();
    if (!print.all && rest.size() > kRestShown) rest.resize(kRestShown);

    std::vector<const Row*> shown = front;
    shown.insert(shown.end(), rest.begin(), rest.end());
    if (shown.empty()) return out;
    std::vector<std::string> alike;
    std::vector<Column> columns = given_columns(result.rows), decided = decided_columns();
    columns.insert(columns.end(), decided.begin(), decided.end());
    columns = that_differ(std::move(columns), shown, alike);
    for (Column& column : figure_columns(shown)) columns.push_back(std::move(column));
    if (!alike.empty()) out += fmt::format("All rows below: {}\n", traces::joined(alike, ", "));

    if (!front.empty()) {
        out += fmt::format(
            "\n{}\n{}",
            result.complete
                ? "The Pareto front: no other allocates and reserves less and is faster; the fastest first"
                : "The Pareto front of those tried, the fastest first",
            table_of(front, columns));
    }
    if (!rest.empty()) {
        out += fmt::format(
            "\n{}{}\n{}", front.empty() ? "The smallest" : "The best of the rest",
            all_rest > rest.size() ? fmt::format(" ({} of {}; --all shows all)", rest.size(), all_rest) : "",
            table_of(rest, columns));
    }
    out += "\nWhat makes the peak and limits the step, and why the rest loses\n";
    for (const Row* row : shown)
        out += fmt::format("{:>4}  {}\n", row->number, planner::why(*row, result.rows));
    return out +
           "MB = 2^20 bytes; peak: allocated; reserved: what has to fit; exposed: communication outside "
           "kernels, per step.\n";
}

std::string anatomy_table(const Row& row, const planner::Anatomy& anatomy) {
    traces::TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right,
                             Align::right, Align::right, Align::left});
    table.header({"MB (2^20)", "stage 0", "stage 1", "stage 2", "stage 3", "formula here", "simulated",
                  "simulated categories"});
    std::array<double, planner::kZeroStages> sums{};
    double here = 0, simulated = 0;
    bool known = true;
    const auto cell = [](double bytes) { return grouped(bytes / kMB, 1); };
    for (const auto& part : anatomy.parts) {
        std::vector<std::string> cells = {part.name};
        for (std::size_t z = 0; z < sums.size(); ++z) {
            cells.push_back(part.known ? cell(part.bytes[z]) : "-");
            sums[z] += part.bytes[z];
        }
        cells.insert(cells.end(),
                     {part.known ? cell(part.here) : "-", cell(part.simulated), part.categories});
        table.row(cells);
        here += part.here;
        simulated += part.simulated;
        known = known && part.known;
    }
    table.rule();
    std::vector<std::string> cells = {"sum"};
    for (const double sum : sums) cells.push_back(known ? cell(sum) : "-");
    cells.insert(cells.end(), {known ? cell(here) : "-", cell(simulated)});
    table.row(cells);
    return fmt::format(
        "\nMemory of row {} by formula, of {} parameters by ZeRO stage over {} device{} (stage {}{}), next "
        "to its simulated peak"
        "\n{}The formulas ignore the schedule: docs/planning.md says what each omits.\n",
        row.number, grouped(anatomy.parameters), anatomy.devices, anatomy.devices == 1 ? "" : "s",
        anatomy.stage, anatomy.offloaded ? ", offloaded to the host" : "", table.text());
}

std::string nothing_fits(const PlanResult& result) {
    if (planner::best(result.rows)) return "";
    const Row* smallest = planner::smallest(result.rows);
    if (!smallest) return "";
    std::vector<std::string> words;
    for (std::size_t c = 0; c < smallest->peak.at_peak.size(); ++c) {
        if (smallest->peak.at_peak[c] > 0)
            words.push_back(fmt::format("{} {}", smallest->peak.at_peak[c], traces::kMemoryCategoryNames[c]));
    }
    std::vector<std::string> settings;
    for (const Override& setting : smallest->settings)
        settings.push_back(fmt::format("{}={}", setting.key, setting.value));
    return fmt::format(
        "nothing fits {}: the smallest peak is {} bytes ({}), of row {} ({}), reached in {}{}; give more "
        "memory "
        "(run.memory_limit, sim.cluster), more ranks, or a smaller batch or model",
        smallest->limit_of, smallest->peak.bytes, traces::joined(words, ", "), smallest->number,
        traces::joined(settings, " "), smallest->peak.where,
        smallest->peak.bytes > smallest->limit ? "" : ", and the allocator has to reserve more than that");
}

}  // namespace shardscope::trainer
