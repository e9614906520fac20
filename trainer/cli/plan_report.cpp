#include "trainer/cli/plan_report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/plan_keys.h"
#include "trainer/cli/configuration_table.h"
#include "trainer/cli/mesh_reasons.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::cli {

namespace {

using planner::Outcome;
using planner::Row;
using traces::report::Align;
using traces::store::grouped;

// As strategy_text(), but ZeRO-1 has its own name, and a hook follows that of DDP.
std::string strategy_of(const job::Job& job) {
    const bool zero_1 = job.parallel.mode == job::ParallelMode::ddp && job.ddp.shard_optimizer;
    const std::string name = zero_1 ? "ZERO_1" : strategy_text(job);
    return job.ddp.comm_hook.kind == job::CommHookKind::none ? name : name + " " + to_text(job.ddp.comm_hook);
}

// "-" if the strategy has no units.
std::string text_of_units(const job::Job& job, std::string_view full_name) {
    return job.parallel.mode == job::ParallelMode::fsdp ? text_of(job, full_name) : "-";
}

// The keys that a search decides.
std::vector<Column<Row>> decided_columns() {
    return {
        {"strategy", Align::left, [](const Row& r) { return strategy_of(r.job); }},
        {"wrap", Align::left, [](const Row& r) { return text_of_units(r.job, "fsdp.wrap"); }},
        {"offload", Align::left,
         [](const Row& r) {
             const bool memory = r.job.memory.offload != job::Offload();
             return (memory ? to_text(r.job.memory.offload) + (r.job.fsdp.cpu_offload ? ", cpu_offload" : "")
                            : yes_no(text_of_gathers(r.job, "fsdp.cpu_offload"))) +
                    (r.job.memory.nvme.empty() ? "" : ", nvme");
         }},
        {"checkpointing", Align::left,
         [](const Row& r) { return text_of(r.job, "memory.activation_checkpointing"); }},
        {"prefetch", Align::left,
         [](const Row& r) { return text_of_gathers(r.job, "fsdp.backward_prefetch"); }},
        {"limiter", Align::left,
         [](const Row& r) { return yes_no(text_of_gathers(r.job, "fsdp.limit_all_gathers")); }},
        {"param", Align::left, [](const Row& r) { return text_of(r.job, "precision.param"); }},
        {"layout", Align::left, [](const Row& r) { return text_of_units(r.job, "fsdp.layout"); }},
        {"batch", Align::right, [](const Row& r) { return text_of(r.job, "data.batch"); }},
        {"accumulation", Align::right, [](const Row& r) { return text_of(r.job, "train.accumulation"); }},
    };
}

// The keys that were given several values on the command line, but for those above.
std::vector<Column<Row>> given_columns(const std::vector<Row>& rows) {
    std::vector<std::string> keys;
    for (const job::Override& setting : rows.empty() ? std::vector<job::Override>{} : rows.front().settings) {
        if (setting.key != "fsdp.layout" && setting.key != "train.accumulation") keys.push_back(setting.key);
    }
    return key_columns<Row>(keys, traces::schema::kPlanKeys);
}

std::vector<Column<Row>> figure_columns(const std::vector<const Row*>& rows) {
    const bool tokens =
        std::any_of(rows.begin(), rows.end(), [](const Row* r) { return r->tokens_per_s > 0; });
    const bool priced = std::any_of(rows.begin(), rows.end(), [](const Row* r) { return r->cost > 0; });
    const auto timed = [](const Row& r, const std::string& text) { return r.timed ? text : "-"; };
    std::vector<Column<Row>> columns = {
        {"fits", Align::left, [](const Row& r) { return r.fits() ? "yes" : "no"; }},
        {"peak MiB", Align::right, [](const Row& r) { return mb(r.peak.bytes); }},
        {"reserved MiB", Align::right, [=](const Row& r) { return timed(r, mb(r.reserved)); }},
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
std::vector<Column<Row>> that_differ(std::vector<Column<Row>> columns, const std::vector<const Row*>& rows,
                                     std::vector<std::string>& alike) {
    std::vector<Column<Row>> differ;
    for (Column<Row>& column : columns) {
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

std::string counts_line(const PlanResult& result) {
    const auto& rows = result.rows;
    std::string text = fmt::format(
        "{} configuration{} on {}: {} fit, {} do not", rows.size(), rows.size() == 1 ? "" : "s",
        result.cluster, planner::count(rows, Outcome::fits), planner::count(rows, Outcome::too_large));
    if (const auto n = planner::count(rows, Outcome::impossible))
        text += fmt::format(", {} are impossible", n);
    if (const auto n = planner::count(rows, Outcome::excluded))
        text += fmt::format(", {} cannot be the best by a lower bound", n);
    if (const auto n = planner::count(rows, Outcome::not_run)) text += fmt::format(", {} were not tried", n);
    return text + fmt::format("; searched in {:.1f} s\n", result.seconds);
}

// The recommended row, and those that the model cannot tell from it.
std::string best_line(const PlanResult& result) {
    const Row* best = planner::best(result.rows);
    const Row* fastest = planner::fastest(result.rows);
    if (!best || !fastest || !result.complete) return "";
    std::string text = fmt::format(
        "Best: row {}, {} ms per step, {} MiB of {} MiB reserved; {} from row 1", best->number,
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
        "ms, {} MiB "
        "reserved): {}{}\n",
        tied.size() - 1, tied.size() == 2 ? "" : "s", 100 * planner::kTie, fastest->number,
        ms(fastest->times.step), mb(fastest->reserved), traces::schema::joined(names, ", "),
        more > 0 ? fmt::format(" and {} more", more) : "");
    return text;
}

std::string one_or(int size, const std::string& text) {
    return size > 1 ? text : "-";
}

// The fastest of each size, and where its groups lie; of each job, if the command line gives other keys
// several values.
std::string meshes_table(const PlanResult& result) {
    std::map<std::tuple<std::string, int, int, int>, const Row*> best;
    std::vector<std::string> jobs;  // in their order
    for (const Row& row : result.rows) {
        if (!row.can_be()) continue;
        if (std::find(jobs.begin(), jobs.end(), row.of_job) == jobs.end()) jobs.push_back(row.of_job);
        const job::ParallelSection& sizes = row.job.parallel;
        const Row*& own = best[{row.of_job, sizes.tensor, sizes.context, sizes.pipeline}];
        if (!own || planner::before(&row, own)) own = &row;
    }
    if (best.size() < 2) return "";
    std::vector<const Row*> rows;
    rows.reserve(best.size());
    for (const std::string& job : jobs)
        for (const auto& [size, row] : best)
            if (std::get<0>(size) == job) rows.push_back(row);
    std::vector<Column<Row>> columns;
    if (jobs.size() > 1) {
        columns = given_columns(result.rows);
        std::erase_if(columns, [](const Column<Row>& column) {
            static constexpr std::array<std::string_view, 8> kOfMeshes = {
                "tensor", "sequence", "context",  "context_exchange",
                "expert", "pipeline", "schedule", "virtual_stages"};
            return std::find(kOfMeshes.begin(), kOfMeshes.end(), column.header) != kOfMeshes.end();
        });
        std::vector<std::string> alike;
        columns = that_differ(std::move(columns), rows, alike);
    }
    const auto any = [&](int job::ParallelSection::*size) {
        return std::any_of(rows.begin(), rows.end(), [&](const Row* r) { return r->job.parallel.*size > 1; });
    };
    const bool contexts = any(&job::ParallelSection::context);
    columns.push_back(
        {"tensor", Align::right, [](const Row& r) { return std::to_string(r.job.parallel.tensor); }});
    if (contexts) {
        columns.push_back(
            {"context", Align::right, [](const Row& r) { return std::to_string(r.job.parallel.context); }});
        columns.push_back({"exchange", Align::left, [](const Row& r) {
                               return one_or(r.job.parallel.context,
                                             text_of(r.job, "parallel.context_exchange"));
                           }});
    }
    if (any(&job::ParallelSection::expert)) {
        columns.push_back(
            {"expert", Align::right, [](const Row& r) { return std::to_string(r.job.parallel.expert); }});
    }
    const std::vector<Column<Row>> of_meshes = {
        {"pipeline", Align::right, [](const Row& r) { return std::to_string(r.job.parallel.pipeline); }},
        {"schedule", Align::left,
         [](const Row& r) { return one_or(r.job.parallel.pipeline, r.job.parallel.schedule); }},
        {"stages", Align::right,
         [](const Row& r) {
             return one_or(r.job.parallel.pipeline, std::to_string(r.job.parallel.virtual_stages));
         }},
        {"strategy", Align::left, [](const Row& r) { return strategy_of(r.job); }},
        {"batch", Align::right, [](const Row& r) { return text_of(r.job, "data.batch"); }},
        {"accumulation", Align::right, [](const Row& r) { return text_of(r.job, "train.accumulation"); }},
        {"checkpointing", Align::left,
         [](const Row& r) { return text_of(r.job, "memory.activation_checkpointing"); }},
    };
    columns.insert(columns.end(), of_meshes.begin(), of_meshes.end());
    for (Column<Row>& column : figure_columns(rows)) columns.push_back(std::move(column));
    columns.push_back({"placement", Align::left, [](const Row& r) { return placement_text(r.axes); }});
    std::string out =
        fmt::format("\nThe fastest of each size of tensor groups{} and pipelines that was simulated\n{}",
                    contexts ? ", context groups" : "", table_of(rows, columns));
    for (const Row* row : rows)
        out += fmt::format("{:>4}  {}\n", row->number, planner::why(*row, result.rows));
    return out;
}

}  // namespace

std::string plan_table(const PlanResult& result, const PlanPrint& print) {
    std::string out =
        counts_line(result) + impossible_lines(result.rows, "configuration", [](const Row& row) {
            return row.outcome == Outcome::impossible ? row.reason : "";
        });
    if (result.raised_steps)
        out +=
            "Jobs of fewer than 3 steps are run for 3 steps: shorter jobs end before memory and step time "
            "are steady\n";
    if (!result.limit_of.empty())
        out += fmt::format("A rank's reserved memory must fit {}\n", result.limit_of);
    out += best_line(result);
    const FrontAndRest<Row> both(result.rows, print.all, planner::before, [](const Row&) { return false; });
    std::vector<const Row*> shown = both.front;
    shown.insert(shown.end(), both.rest.begin(), both.rest.end());
    if (shown.empty()) return out;
    out += meshes_table(result) + mesh_reasons(result.rows);
    std::vector<std::string> alike;
    std::vector<Column<Row>> columns = given_columns(result.rows), decided = decided_columns();
    columns.insert(columns.end(), decided.begin(), decided.end());
    columns = that_differ(std::move(columns), shown, alike);
    for (Column<Row>& column : figure_columns(shown)) columns.push_back(std::move(column));
    if (!alike.empty()) out += fmt::format("All rows below: {}\n", traces::schema::joined(alike, ", "));

    if (!both.front.empty()) {
        out += fmt::format(
            "\n{}\n{}",
            result.complete
                ? "The Pareto front: no other allocates and reserves less and is faster; the fastest first"
                : "The Pareto front of those tried, the fastest first",
            table_of(both.front, columns));
    }
    out += both.rest_table(both.front.empty() ? "The smallest" : "The best of the rest", columns);
    out += "\nWhat causes the peak and limits the step, and why the others are worse\n";
    for (const Row* row : shown)
        out += fmt::format("{:>4}  {}\n", row->number, planner::why(*row, result.rows));
    return out +
           "Peak: allocated; reserved: what has to fit; exposed: communication outside "
           "kernels, per step.\n";
}

std::string anatomy_table(const Row& row, const planner::Anatomy& anatomy) {
    traces::report::TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right,
                                     Align::right, Align::right, Align::left});
    table.header({"MiB", "stage 0", "stage 1", "stage 2", "stage 3", "formula here", "simulated",
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
            words.push_back(
                fmt::format("{} {}", smallest->peak.at_peak[c], traces::schema::kMemoryCategoryNames[c]));
    }
    std::vector<std::string> settings;
    for (const job::Override& setting : smallest->settings)
        settings.push_back(fmt::format("{}={}", setting.key, setting.value));
    return fmt::format(
        "nothing fits {}: the smallest peak is {} bytes ({}), of row {} ({}), reached in {}{}; give more "
        "memory "
        "(run.memory_limit, sim.cluster), more ranks, or a smaller batch or model",
        smallest->limit_of, smallest->peak.bytes, traces::schema::joined(words, ", "), smallest->number,
        traces::schema::joined(settings, " "), smallest->peak.where,
        smallest->peak.bytes > smallest->limit ? "" : ", and the allocator has to reserve more than that");
}

}  // namespace shardscope::trainer::cli
