#include "trainer/cli/schedule_report.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/schema/joined.h"
#include "trainer/cli/schedule_picture.h"
#include "trainer/pipeline/csv.h"

namespace shardscope::trainer::cli {

namespace {

using pipeline::ComparedSchedule;
using pipeline::Costs;
using pipeline::Fraction;
using pipeline::ReplayedRank;
using pipeline::ScheduleKind;
using pipeline::Shape;
using traces::analysis::Field;
using traces::analysis::Unit;
using traces::store::Cell;
using Json = nlohmann::ordered_json;

Cell cell_of(const Fraction& number) {
    return number.denominator == 1 ? Cell(number.numerator) : Cell(number.value());
}

// --- a row per rank --------------------------------------------------------------------------------------

struct RankRow {
    const ScheduleView* view;
    int rank;

    const ReplayedRank& own() const { return view->replay.ranks[static_cast<std::size_t>(rank)]; }
    Cell time(std::int64_t ticks) const { return cell_of(view->costs.units(ticks)); }
    std::vector<int> stages() const { return view->schedule.stages_of(rank); }
};

// Conditions on the costs do not matter to what is in flight: they hold for equal ones.
bool peak_holds(const ScheduleKind& kind, const Shape& shape) {
    return kind.form.holds(shape, Costs{});
}

traces::analysis::Fields<RankRow> rank_fields() {
    using R = RankRow;
    static constexpr Field<R> kFields[] = {
        {{"rank", "Rank", Unit::index, "Number of the rank."}, traces::analysis::value_of<&R::rank, R>},
        {{"stages", "Stages", Unit::text, "The stages that it holds, numbered over the whole model."},
         [](const R& r) -> Cell { return traces::schema::joined(r.stages(), ","); }},
        {{"busy", "Busy", Unit::count, "Time of its computations, in units."},
         [](const R& r) { return r.time(r.own().busy); }},
        {{"idle", "Idle", Unit::count,
          "The rest of the makespan: warm-up, peer, communication and drain together."},
         [](const R& r) { return r.time(r.own().idle()); }},
        {{"idle_percent", "Idle", Unit::percent, "Idle time as a share of the makespan."},
         [](const R& r) -> Cell {
             return 100 * Fraction::of(r.own().idle(), r.view->replay.makespan).value();
         }},
        {{"warm_up", "Warm-up", Unit::count, "Idle time before its first action."},
         [](const R& r) { return r.time(r.own().warm_up); }},
        {{"peer", "Peer", Unit::count,
          "Idle time between its actions while the rank that it waits for still computes."},
         [](const R& r) { return r.time(r.own().peer); }},
        {{.key = "communication",
          .title = "Transfer",
          .unit = Unit::count,
          .meaning = "Idle time between its actions while the result is transferred.",
          .where_known = true},
         [](const R& r) { return r.time(r.own().communication); }},
        {{"drain", "Drain", Unit::count, "Idle time after its last action."},
         [](const R& r) { return r.time(r.own().drain); }},
        {{"idle_in_span", "In span", Unit::count,
          "Idle time between its first and last action, which is what papers on zero-bubble schedules "
          "count."},
         [](const R& r) { return r.time(r.own().idle_in_span()); }},
        {{"in_flight_peak", "Peak (chunks)", Unit::count,
          "The most chunks whose forward has begun and whose backward (B or W) has not ended: their "
          "activations are kept."},
         [](const R& r) -> Cell { return std::int64_t{r.own().peak_in_flight}; }},
        {{.key = "in_flight_formula",
          .title = "Formula",
          .unit = Unit::count,
          .meaning = "The same by the schedule's closed form, where it holds.",
          .where_known = true},
         [](const R& r) -> Cell {
             const ScheduleKind* kind = r.view->kind;
             return kind && peak_holds(*kind, r.view->shape)
                        ? Cell(kind->form.peak_chunks(r.view->shape, r.rank))
                        : Cell();
         }},
    };
    return kFields;
}

traces::analysis::ResultTable rank_rows(const ScheduleView& view) {
    std::vector<RankRow> rows;
    rows.reserve(view.schedule.actions.size());
    for (int r = 0; r < view.schedule.ranks(); ++r) rows.push_back({&view, r});
    return traces::analysis::result_table(rank_fields(), rows);
}

// --- a row per schedule ----------------------------------------------------------------------------------

Cell if_possible(const ComparedSchedule& row, const Fraction& number) {
    return row.refused.empty() ? cell_of(number) : Cell();
}

traces::analysis::Fields<ComparedSchedule> compared_fields() {
    using R = ComparedSchedule;
    static constexpr Field<R> kFields[] = {
        {{"schedule", "Schedule", Unit::text, "Its name."},
         [](const R& r) -> Cell { return std::string(r.kind->name); }},
        {{"chunks", "Chunks", Unit::count, "Stages per rank."}, traces::analysis::value_of<&R::chunks, R>},
        {{"makespan", "Makespan", Unit::count, "Time of a step, in units."},
         [](const R& r) { return if_possible(r, r.makespan); }},
        {{"idle", "Idle", Unit::count, "Idle time within it of the rank that idles most."},
         [](const R& r) { return if_possible(r, r.idle); }},
        {{"bubble_percent", "Bubble", Unit::percent,
          "Idle time of all ranks as a share of ranks times makespan."},
         [](const R& r) { return r.refused.empty() ? Cell(100 * r.bubble.value()) : Cell(); }},
        {{"in_flight_peak", "Peak (chunks)", Unit::count, "The most chunks in flight, of any rank."},
         [](const R& r) {
             return if_possible(r, {r.peak_in_flight, 1});
         }},
        {{"in_flight_micro_batches", "Peak (micro-batches)", Unit::count,
          "The same in micro-batches through all stages of a rank: chunks in flight / chunks per rank."},
         [](const R& r) { return if_possible(r, r.peak_micro_batches); }},
        {{"messages", "Messages", Unit::count, "Outputs and gradients that a step sends from rank to rank."},
         [](const R& r) {
             return if_possible(r, {r.messages, 1});
         }},
        {{.key = "refused",
          .title = "Not possible",
          .unit = Unit::text,
          .meaning = "Why the schedule cannot have this shape; null if it can.",
          .where_known = true},
         [](const R& r) { return r.refused.empty() ? Cell() : Cell(r.refused); }},
    };
    return kFields;
}

// In a table, `own` is marked and reasons follow it.
std::string compared_text(const std::vector<ComparedSchedule>& rows, const ScheduleKind* own) {
    traces::analysis::ResultTable table =
        traces::analysis::without(traces::analysis::result_table(compared_fields(), rows), {"refused"});
    std::string reasons;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].kind == own) table.rows[i][0] = std::string(own->name) + " <";
        if (!rows[i].refused.empty()) reasons += fmt::format("Not possible: {}\n", rows[i].refused);
    }
    return traces::report::text_of(table, traces::report::kTableWidth) + reasons;
}

// --- sentences -------------------------------------------------------------------------------------------

std::string units(const Costs& costs, std::int64_t ticks) {
    return time_text(costs.units(ticks));
}

std::string costs_text(const Costs& costs) {
    std::string text =
        fmt::format("forward {}, backward input {}, weight {} units", units(costs, costs.forward),
                    units(costs, costs.input), units(costs, costs.weight));
    if (costs.transfer > 0) text += fmt::format(", a transfer {}", units(costs, costs.transfer));
    return text;
}

std::string shape_text(const ScheduleView& view) {
    return fmt::format(
        "{}, {} ({} placement), {}", traces::store::counted(view.schedule.ranks(), "rank", "ranks"),
        traces::store::counted(view.schedule.stages(), "stage", "stages"), name(view.schedule.placement()),
        traces::store::counted(view.schedule.micro_batches, "micro-batch", "micro-batches"));
}

std::string title_text(const ScheduleView& view) {
    const std::string title = view.kind ? fmt::format("{} ({})", view.kind->title, view.kind->name)
                                        : "a schedule that has no name here";
    return view.file.empty() ? title : fmt::format("{}: {}", traces::report::printable(view.file), title);
}

std::string percent_text(const Fraction& fraction) {
    return traces::store::grouped(100 * fraction.value(), 2) + " %";
}

std::string bubble_text(const ScheduleView& view) {
    return fmt::format("Makespan {} units; bubble {} of ranks x makespan, {}\n",
                       units(view.costs, view.replay.makespan), text_of(view.replay.bubble()),
                       percent_text(view.replay.bubble()));
}

bool form_holds(const ScheduleView& view) {
    return view.kind && view.costs.transfer == 0 && view.kind->form.holds(view.shape, view.costs);
}

std::int64_t form_idle(const ScheduleView& view) {
    return view.kind->form.idle_ticks(view.shape, view.costs);
}

std::string form_text(const ScheduleView& view) {
    const pipeline::ClosedForm& form = view.kind->form;
    std::string condition = form.when == "always" ? "" : fmt::format(" if {}", form.when);
    if (view.costs.transfer > 0)
        condition += condition.empty() ? " if transfers take no time" : " and transfers take no time";
    std::string here = "not here, so the replay is the answer";
    if (form_holds(view)) {
        const std::int64_t busy = std::int64_t{view.shape.micro_batches} * view.shape.chunks *
                                  (view.costs.forward + view.costs.backward());
        const std::int64_t idle = form_idle(view);
        here = fmt::format("{} units, {}", units(view.costs, idle),
                           percent_text(Fraction::of(idle, busy + idle)));
    }
    return fmt::format("Closed form: idle {}{}: {}; peak {} ({})", form.idle, condition, here, form.peak,
                       view.kind->paper);
}

std::string actions_text(const ScheduleView& view) {
    if (!view.shows_actions) return "";
    std::string text = "\nActions\n";
    std::string lines = csv_text(view.schedule);
    for (int rank = 0; !lines.empty(); ++rank) {
        std::string line = lines.substr(0, lines.find('\n'));
        lines.erase(0, line.size() + 1);
        std::replace(line.begin(), line.end(), ',', ' ');
        text +=
            traces::report::paragraph(fmt::format("rank {}: {}", rank, line), traces::report::kTableWidth);
    }
    return text;
}

// --- JSON ------------------------------------------------------------------------------------------------

Json number_json(const Costs& costs, std::int64_t ticks) {
    return traces::report::json_of(cell_of(costs.units(ticks)));
}

Json costs_json(const Costs& costs) {
    return {{"forward", number_json(costs, costs.forward)},
            {"input", number_json(costs, costs.input)},
            {"weight", number_json(costs, costs.weight)},
            {"transfer", number_json(costs, costs.transfer)}};
}

Json shape_json(const Shape& shape) {
    return {{"pipeline", shape.ranks}, {"micro_batches", shape.micro_batches}, {"chunks", shape.chunks}};
}

Json form_json(const ScheduleView& view) {
    if (!view.kind) return nullptr;
    const pipeline::ClosedForm& form = view.kind->form;
    return {{"idle", form.idle},
            {"when", form.when},
            {"holds", form_holds(view)},
            {"idle_units", form_holds(view) ? number_json(view.costs, form_idle(view)) : Json(nullptr)},
            {"in_flight_peak", form.peak},
            {"source", view.kind->paper}};
}

Json actions_json(const pipeline::Schedule& schedule) {
    Json all = Json::array();
    for (const std::vector<pipeline::Action>& own : schedule.actions) {
        Json cells = Json::array();
        for (std::size_t at = 0; at < own.size(); at += cell_at(own, at).size())
            cells.push_back(cell_text(cell_at(own, at)));
        all.push_back(std::move(cells));
    }
    return all;
}

}  // namespace

std::string schedule_table(const ScheduleView& view) {
    std::string out = fmt::format("{}: {}\n", title_text(view), shape_text(view));
    if (view.kind) out += fmt::format("{}\n", view.kind->summary);
    out += fmt::format("A chunk (a stage, a micro-batch) takes {}\n\n", costs_text(view.costs));
    out += schedule_picture(view.schedule, view.replay, traces::report::kTableWidth);
    out +=
        fmt::format("\nPer rank, times in units: idle = warm-up + peer + transfer + drain\n{}\n{}{}",
                    traces::report::text_of(rank_rows(view), traces::report::kTableWidth), bubble_text(view),
                    view.kind ? traces::report::paragraph(form_text(view), traces::report::kTableWidth) : "");
    if (!view.compared.empty()) {
        out += fmt::format(
            "\nThe schedules for {} ranks and {} micro-batches, with the same work on each rank: {} units "
            "per micro-batch\n{}",
            view.shape.ranks, view.shape.micro_batches,
            units(view.costs, (view.costs.forward + view.costs.backward()) * view.shape.chunks),
            compared_text(view.compared, view.kind));
    }
    return out + actions_text(view);
}

std::string schedule_json(const ScheduleView& view) {
    Json json;
    json["schedule"] = view.kind ? Json(view.kind->name) : Json(nullptr);
    json["file"] = view.file.empty() ? Json(nullptr) : Json(view.file);
    json["placement"] = name(view.schedule.placement());
    json.update(shape_json(view.shape));
    json["costs"] = costs_json(view.costs);
    json["makespan"] = number_json(view.costs, view.replay.makespan);
    json["bubble"] = text_of(view.replay.bubble());
    json["bubble_percent"] = 100 * view.replay.bubble().value();
    json["closed_form"] = form_json(view);
    json["ranks"] = traces::report::json_of(rank_rows(view));
    for (int rank = 0; rank < view.schedule.ranks(); ++rank)
        json["ranks"][static_cast<std::size_t>(rank)]["stages"] = view.schedule.stages_of(rank);
    json["schedules"] =
        traces::report::json_of(traces::analysis::result_table(compared_fields(), view.compared));
    json["actions"] = actions_json(view.schedule);
    return traces::report::json_line(json);
}

std::string comparison_table(const ScheduleComparison& compared) {
    const std::string title = fmt::format(
        "Pipeline schedules for {} ranks and {} micro-batches. In every row the stages of a rank together "
        "take {} per "
        "micro-batch.",
        compared.shape.ranks, compared.shape.micro_batches, costs_text(compared.costs));
    return traces::report::paragraph(title, traces::report::kTableWidth) + "\n" +
           compared_text(compared.rows, nullptr);
}

std::string comparison_json(const ScheduleComparison& compared) {
    Json json = {{"pipeline", compared.shape.ranks}, {"micro_batches", compared.shape.micro_batches}};
    json["costs"] = costs_json(compared.costs);
    json["schedules"] =
        traces::report::json_of(traces::analysis::result_table(compared_fields(), compared.rows));
    return traces::report::json_line(json);
}

std::string comparison_csv(const ScheduleComparison& compared) {
    return traces::report::csv_of(traces::analysis::result_table(compared_fields(), compared.rows));
}

std::string schedule_keys() {
    std::string text;
    const auto add = [&](std::string_view list, const auto& fields) {
        text += fmt::format("{}[]\n", list);
        for (const auto& field : fields) text += fmt::format("  {:<24}{}\n", field.key, field.meaning);
    };
    add("ranks", rank_fields());
    add("schedules", compared_fields());
    return text;
}

std::string schedule_page() {
    std::string text =
        "| name | in PyTorch | chunks | micro-batches | idle time of a rank | where the formula holds | "
        "chunks in flight on "
        "rank r | source |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (const ScheduleKind& kind : pipeline::schedule_kinds()) {
        text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", kind.name,
                            kind.pytorch.empty() ? "-" : fmt::format("`{}`", kind.pytorch),
                            taken_chunks(kind), taken_micro_batches(kind), kind.form.idle, kind.form.when,
                            kind.form.peak, kind.paper);
    }
    return text;
}

}  // namespace shardscope::trainer::cli
