#include "trainer/cli/lift_report.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/joined.h"
#include "traces/schema/json_text.h"
#include "trainer/cli/configuration_table.h"
#include "trainer/cli/json_parts.h"
#include "trainer/lift/pytorch_lines.h"

namespace shardscope::trainer::cli {

namespace {

using lift::Lifted;
using lift::Replay;
using traces::report::Align;
using traces::store::grouped;

constexpr std::size_t kWidth = 110;
constexpr std::string_view kNone = "-";  // the cell of a figure that the trace does not allow

double percent(double value, double base) {
    return base > 0 ? 100 * (value - base) / base : 0;
}
// "+3.0 %"
std::string signed_percent(double value, double base) {
    return fmt::format("{:+.1f} %", percent(value, base));
}
// "-11.4 GiB", "+3.2 MiB"
std::string signed_bytes(std::int64_t bytes) {
    const double mega = static_cast<double>(bytes) / kMB;
    if (std::abs(mega) >= 1024) return fmt::format("{:+.1f} GiB", mega / 1024);
    return fmt::format("{:+.1f} MiB", mega);
}

// --- columns ----------------------------------------------------------------------------------------------

std::string wrap_text(const Lifted& lifted, const job::Job& job) {
    if (job.parallel.mode != job::ParallelMode::fsdp) return "-";
    if (lifted.units && !job.origins.contains("fsdp.wrap")) return "as recorded";
    return text_of(job, "fsdp.wrap");
}

// The settings that every replay has, then the other requested keys.
std::vector<Column<Replay>> setting_columns(const LiftResult& result) {
    static constexpr std::array<std::string_view, 6> kShown = {
        "parallel.mode", "fsdp.sharding_strategy", "fsdp.shard_group",
        "fsdp.wrap",     "fsdp.backward_prefetch", "fsdp.limit_all_gathers"};
    std::vector<std::string> keys;
    for (const Replay& row : result.rows) {
        for (const job::Override& change : row.changes) {
            if (std::find(keys.begin(), keys.end(), change.key) == keys.end()) keys.push_back(change.key);
        }
    }
    std::vector<Column<Replay>> columns = {
        {"strategy", Align::left, [](const Replay& r) { return strategy_text(r.job); }},
        {"wrap", Align::left, [&](const Replay& r) { return wrap_text(result.lifted, r.job); }},
        {"prefetch", Align::left,
         [](const Replay& r) { return text_of_gathers(r.job, "fsdp.backward_prefetch"); }},
        {"limiter", Align::left,
         [](const Replay& r) { return yes_no(text_of_gathers(r.job, "fsdp.limit_all_gathers")); }},
    };
    for (Column<Replay>& column : key_columns<Replay>(keys, kShown)) columns.push_back(std::move(column));
    return columns;
}

std::vector<Column<Replay>> figure_columns(const LiftResult& result) {
    const Replay& base = result.unmodified;
    std::vector<Column<Replay>> columns = {
        {"units", Align::right, [](const Replay& r) { return grouped(static_cast<std::int64_t>(r.units)); }}};
    if (result.lifted.memory) {
        columns.push_back({"peak MiB", Align::right, [](const Replay& r) { return mb(r.peak.bytes); }});
    }
    columns.push_back({"peak", Align::right,
                       [&](const Replay& r) { return signed_bytes(r.peak.bytes - base.peak.bytes); }});
    const auto timed = [&](const char* header, auto cell) {
        columns.push_back({header, Align::right, [&result, cell](const Replay& r) {
                               return result.lifted.times ? cell(r) : std::string(kNone);
                           }});
    };
    timed("step ms", [](const Replay& r) { return ms(r.step_s); });
    timed("step", [&](const Replay& r) { return signed_percent(r.step_s, base.step_s); });
    timed("exposed ms", [](const Replay& r) { return ms(r.exposed_s); });
    return columns;
}

bool faster(const Replay* a, const Replay* b) {
    return std::tuple(a->step_s, a->peak.bytes, a->number) < std::tuple(b->step_s, b->peak.bytes, b->number);
}

// --- words ------------------------------------------------------------------------------------------------

std::string head(const LiftResult& result) {
    const Lifted& lifted = result.lifted;
    const Replay& base = result.unmodified;
    std::string out =
        lifted.times
            ? fmt::format("Unmodified replay: {} ms per step, recorded median {} ms ({})", ms(base.step_s),
                          ms(lifted.step_s), signed_percent(base.step_s, lifted.step_s))
            : fmt::format("Unmodified replay: {} ms per step, recorded {}", kNone, kNone);
    if (lifted.peak_bytes >= 0) {
        const std::int64_t off = base.peak.bytes - lifted.peak_bytes;
        out += fmt::format("; peak {} MiB, recorded {} MiB ({})", mb(base.peak.bytes), mb(lifted.peak_bytes),
                           off == 0 ? "equal to the byte" : signed_bytes(off));
    }
    std::size_t kernels = 0;
    const auto count = [&](const std::vector<lift::Item>& items) {
        kernels +=
            static_cast<std::size_t>(std::count_if(items.begin(), items.end(), [](const lift::Item& i) {
                return i.kind == lift::Item::Kind::kernel;
            }));
    };
    const auto both = [&](const lift::Segment& segment) {
        count(segment.forward);
        count(segment.backward);
    };
    for (const lift::Node& node : lifted.step.nodes)
        for (const lift::Call& call : node.calls)
            for (const lift::Segment& segment : call.own) both(segment);
    both(lifted.step.loss);
    out += fmt::format(
        "\nLifted: rank {} of {}, {} step{}, {} module{} with {}{} parameters in them; recorded as {}{}{}\n",
        lifted.rank, lifted.ranks, lifted.steps, lifted.steps == 1 ? "" : "s",
        grouped(static_cast<std::int64_t>(lifted.step.nodes.size())),
        lifted.step.nodes.size() == 1 ? "" : "s",
        lifted.times ? grouped(static_cast<std::int64_t>(kernels)) + " kernels and " : "",
        grouped(lifted.step.elements()), strategy_text(base.job),
        base.job.parallel.mode == job::ParallelMode::fsdp ? ", wrap " + wrap_text(lifted, base.job) : "",
        fmt::format(", {} {}{}", base.units,
                    base.job.parallel.mode == job::ParallelMode::ddp ? "bucket" : "unit",
                    base.units == 1 ? "" : "s"));
    for (const std::string& note : lifted.notes) out += traces::report::paragraph("Note: " + note, kWidth);
    if (result.links != "as recorded")
        out +=
            fmt::format("Collectives below: {}; compared with the unmodified replay above\n", result.links);
    return out;
}

// A row's name in one line: the settings that differ.
std::string name_of(const Replay& row) {
    if (row.changes.empty()) return "as recorded";
    std::vector<std::string> words;
    for (const job::Override& change : row.changes) words.push_back(change.key + "=" + change.value);
    return traces::schema::joined(words, " ");
}

// A row and the lines that are printed for it.
struct RowLines {
    const Replay* row = nullptr;
    std::vector<lift::PytorchLines> apis;
};

// The row that is shown; and, if it uses an API other than the recorded ones (a DDP row for a job of
// fully_shard), the fastest row of each recorded API. A requested row is shown alone.
std::vector<RowLines> rows_with_lines(const LiftResult& result) {
    std::vector<RowLines> out;
    std::set<std::string> covered;
    if (const Replay* shown = shown_row(result); shown && shown->can_be()) {
        out.push_back({shown, lift::pytorch_lines(result.lifted, shown->job)});
        for (const lift::PytorchLines& api : out.back().apis) covered.insert(api.api);
    }
    if (result.wanted > 0) return out;
    for (const lift::PytorchLines& wanted : lift::pytorch_lines(result.lifted, result.unmodified.job)) {
        if (covered.contains(wanted.api)) continue;
        const Replay* best = nullptr;
        lift::PytorchLines lines;
        for (const Replay& row : result.rows) {
            if (!row.can_be() || (best && !faster(&row, best))) continue;
            for (lift::PytorchLines& own : lift::pytorch_lines(result.lifted, row.job)) {
                if (own.api != wanted.api) continue;
                best = &row;
                lines = std::move(own);
            }
        }
        if (!best) continue;
        covered.insert(wanted.api);
        const auto same =
            std::find_if(out.begin(), out.end(), [&](const RowLines& r) { return r.row == best; });
        if (same == out.end()) {
            out.push_back({best, {std::move(lines)}});
        } else {
            same->apis.push_back(std::move(lines));
        }
    }
    return out;
}

}  // namespace

const lift::Replay* shown_row(const LiftResult& result) {
    const Replay* best = nullptr;
    for (const Replay& row : result.rows) {
        if (row.number == result.wanted) return &row;
        if (row.front && (!best || faster(&row, best))) best = &row;
    }
    return best;
}

std::string difference_of(const Replay& row, const LiftResult& result) {
    const Replay& base = result.unmodified;
    std::string bytes = signed_bytes(row.peak.bytes - base.peak.bytes);
    if (!result.lifted.times) return bytes;
    return fmt::format("{}, {} step", bytes, signed_percent(row.step_s, base.step_s));
}

std::string lift_table(const LiftResult& result, bool all) {
    std::string out = head(result) + impossible_lines(result.rows, "replay",
                                                      [](const Replay& row) { return row.impossible; });
    const FrontAndRest<Replay> shown(result.rows, all, faster,
                                     [&](const Replay& row) { return row.number == result.wanted; });
    std::vector<Column<Replay>> columns = setting_columns(result);
    for (Column<Replay>& column : figure_columns(result)) columns.push_back(std::move(column));
    if (!shown.front.empty()) {
        out += fmt::format("\nThe Pareto front of {} replays: {}\n{}", result.rows.size(),
                           result.lifted.times ? "no other is both smaller and faster; the fastest first"
                                               : "no other is smaller",
                           table_of(shown.front, columns));
    }
    out += shown.rest_table("The best of the rest", columns);
    for (const RowLines& own : rows_with_lines(result)) {
        out += fmt::format("\nRow {} ({}): {}\n", own.row->number, name_of(*own.row),
                           difference_of(*own.row, result));
        for (const lift::PytorchLines& api : own.apis) {
            out += fmt::format("  {}\n", api.api);
            for (const std::string& line : api.lines) out += fmt::format("    {}\n", line);
        }
    }
    return out +
           "\nExposed: communication outside kernels, of a steady step; differences are "
           "from the unmodified replay.\n";
}

std::string lift_json(const LiftResult& result) {
    const Lifted& lifted = result.lifted;
    nlohmann::ordered_json json;
    const auto timed = [&](double value) {
        return lifted.times ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
    };
    const auto figures = [&](nlohmann::ordered_json& to, const Replay& row) {
        to["units"] = row.units;
        to["peak_bytes"] = row.peak.bytes;
        to["at_peak"] = categories_json(row.peak.at_peak);
        to["step_us"] = timed(row.step_s * 1e6);
        to["kernel_us"] = timed(row.kernel_s * 1e6);
        to["exposed_communication_us"] = timed(row.exposed_s * 1e6);
        to["collective_bytes"] = row.moved_bytes;
    };
    json["trace"] = lifted.file;
    json["rank"] = lifted.rank;
    json["ranks"] = lifted.ranks;
    json["steps"] = lifted.steps;
    json["modules"] = lifted.step.nodes.size();
    json["parameters"] = lifted.step.elements();
    json["recorded"] = {{"step_us", timed(lifted.step_s * 1e6)}};
    if (lifted.peak_bytes >= 0) json["recorded"]["peak_bytes"] = lifted.peak_bytes;
    for (const job::Override& setting : lifted.settings)
        json["recorded"]["settings"][setting.key] = setting.value;
    json["unmodified"] = nlohmann::ordered_json::object();
    figures(json["unmodified"], result.unmodified);
    json["unmodified"]["step_error_percent"] = timed(percent(result.unmodified.step_s, lifted.step_s));
    if (lifted.peak_bytes >= 0)
        json["unmodified"]["peak_error_bytes"] = result.unmodified.peak.bytes - lifted.peak_bytes;
    json["not_known"] = lifted.notes;
    json["links"] = result.links;
    json["complete"] = result.complete;
    const Replay* shown = shown_row(result);
    json["shown"] = shown ? nlohmann::ordered_json(shown->number) : nlohmann::ordered_json(nullptr);
    json["rows"] = nlohmann::ordered_json::array();
    for (const Replay& row : result.rows) {
        nlohmann::ordered_json& own = json["rows"].emplace_back();
        own["row"] = row.number;
        own["settings"] = settings_json(row.changes);
        if (!row.can_be()) {
            own["reason"] = row.impossible;
            continue;
        }
        figures(own, row);
        own["peak_difference_bytes"] = row.peak.bytes - result.unmodified.peak.bytes;
        own["step_difference_percent"] = timed(percent(row.step_s, result.unmodified.step_s));
        own["front"] = row.front;
        if (row.same_as != 0) own["same_as"] = row.same_as;
        for (const lift::PytorchLines& api : lift::pytorch_lines(lifted, row.job))
            own["pytorch"][api.api] = api.lines;
        if (std::string job = result.job_of(row); !job.empty()) own["job"] = std::move(job);
    }
    return traces::schema::dump_json(json) + "\n";
}

}  // namespace shardscope::trainer::cli
