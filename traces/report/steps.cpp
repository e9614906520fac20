// Steps as table, JSON and CSV.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

// Eight or more categories must fit into a terminal's line.
constexpr std::array<const char*, kTimeCategories> kShortNames = {"Kernel",  "Memcpy", "Memset", "Comm.",
                                                                  "Runtime", "Data",   "CPU",    "Other"};

bool any_loss(const StepsReport& report) {
    for (const RankStepDetails& rank : report.ranks) {
        for (const StepDetail& step : rank.steps) {
            if (step.loss) return true;
        }
    }
    return false;
}

std::string difference(std::int64_t window, double median) {
    return median > 0 ? fmt::format("{:+.1f}", 100.0 * (static_cast<double>(window) - median) / median) : "-";
}

bool known(const RankStepDetails& rank, std::size_t category) {
    return rank.knows(static_cast<TimeCategory>(category));
}

template <typename Value>
void add_known(std::vector<Cell>& cells, bool known, Value value) {
    cells.emplace_back();
    if (known) cells.back() = value;
}

Json step_json(const RankStepDetails& rank, const StepDetail& step) {
    Json categories = Json::object();
    for (std::size_t c = 0; c < step.summary.ns.size(); ++c)
        categories[std::string(kTimeCategoryNames[c])] =
            known(rank, c) ? Json(to_us(step.summary.ns[c])) : Json(nullptr);
    return {{"step", step.summary.number},
            {"start_ns", step.summary.window_start},
            {"end_ns", step.summary.window_end},
            {"us", to_us(step.window())},
            {"host_start_ns", step.host_start},
            {"host_end_ns", step.host_end},
            {"host_us", to_us(step.host_end - step.host_start)},
            {"categories_us", std::move(categories)},
            {"device_events", rank.on_device ? Json(step.device_events) : Json(nullptr)},
            {"device_busy_us", rank.on_device ? Json(to_us(step.device_busy)) : Json(nullptr)},
            {"loss", step.loss ? Json(*step.loss) : Json(nullptr)}};
}

std::string rank_table(const RankStepDetails& rank, bool loss, std::size_t width) {
    std::vector<Align> align(14, Align::right);
    std::vector<std::string> header = {"Step", "Host (us)", "Window (us)", "Diff (%)"};
    for (const char* name : kShortNames) header.emplace_back(name);
    header.insert(header.end(), {"Busy", "Events"});
    if (loss) {
        header.emplace_back("Loss");
        align.push_back(Align::right);
    }
    header.emplace_back("");
    align.push_back(Align::left);
    TextTable table(align);
    table.header(std::move(header));
    for (std::size_t s = 0; s < rank.steps.size(); ++s) {
        const StepDetail& step = rank.steps[s];
        std::vector<std::string> cells = {
            std::to_string(step.summary.number), us(to_us(step.host_end - step.host_start)),
            us(to_us(step.window())), difference(step.window(), rank.median_window)};
        for (std::size_t c = 0; c < step.summary.ns.size(); ++c)
            cells.push_back(known(rank, c) ? percent(step.summary.ns[c], step.window()) : "-");
        cells.push_back(rank.on_device ? percent(step.device_busy, step.window()) : "-");
        cells.push_back(rank.on_device ? grouped(step.device_events) : "-");
        if (loss) cells.push_back(step.loss ? fmt::format("{:.6g}", *step.loss) : "-");
        cells.emplace_back(static_cast<std::int64_t>(s) == rank.slowest ? "slowest" : "");
        table.row(std::move(cells));
    }
    return table.text(width);
}

std::string table_text(const StepsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const bool loss = any_loss(report);
    std::string text =
        "Host: the step's range on the host. Window: from the end of the device work before it to the end\n"
        "of its own. Categories and busy (any device work): % of the window. Diff: against the rank's\n"
        "median window, which excludes the trace's first step if three or more are kept.\n";
    for (const RankStepDetails& rank : report.ranks) {
        text += fmt::format("\nRank {}: {} step{}", rank.rank, grouped(std::int64_t(rank.steps.size())),
                            rank.steps.size() == 1 ? "" : "s");
        if (rank.cut_steps > 0)
            text += fmt::format(" ({} at the end cut off and left out)", grouped(rank.cut_steps));
        text += '\n' + rank_table(rank, loss, width);
    }
    if (report.across.empty()) return text;
    TextTable across({Align::right, Align::right, Align::right, Align::right});
    across.header({"Step", "Slowest rank", "Longest window (us)", "Shortest (us)"});
    for (const StepAcrossRanks& step : report.across) {
        across.row({std::to_string(step.number),
                    step.slowest_rank < 0 ? "-" : std::to_string(step.slowest_rank), us(to_us(step.longest)),
                    us(to_us(step.shortest))});
    }
    return text + "\nAcross ranks\n" + across.text(width);
}

std::string json_text(const StepsReport& report) {
    Json ranks = Json::array();
    for (const RankStepDetails& rank : report.ranks) {
        Json steps = Json::array();
        for (const StepDetail& step : rank.steps) steps.push_back(step_json(rank, step));
        Json json = {{"rank", rank.rank},
                     {"cut_steps", rank.cut_steps},
                     {"median_us", to_us(rank.median_window)},
                     {"slowest_step", nullptr},
                     {"steps", std::move(steps)}};
        if (rank.slowest >= 0)
            json["slowest_step"] = rank.steps[static_cast<std::size_t>(rank.slowest)].summary.number;
        ranks.push_back(std::move(json));
    }
    Json across = Json::array();
    for (const StepAcrossRanks& step : report.across) {
        across.push_back({{"step", step.number},
                          {"slowest_rank", step.slowest_rank < 0 ? Json(nullptr) : Json(step.slowest_rank)},
                          {"longest_us", to_us(step.longest)},
                          {"shortest_us", to_us(step.shortest)}});
    }
    return json_line({{"ranks", std::move(ranks)}, {"across_ranks", std::move(across)}});
}

std::string csv_text(const StepsReport& report) {
    std::vector<std::vector<Cell>> rows;
    for (const RankStepDetails& rank : report.ranks) {
        for (const StepDetail& step : rank.steps) {
            std::vector<Cell> cells = {std::int64_t(rank.rank), step.summary.number,
                                       step.summary.window_start, to_us(step.window()),
                                       to_us(step.host_end - step.host_start)};
            for (std::size_t c = 0; c < step.summary.ns.size(); ++c)
                add_known(cells, known(rank, c), to_us(step.summary.ns[c]));
            add_known(cells, rank.on_device, step.device_events);
            add_known(cells, rank.on_device, to_us(step.device_busy));
            cells.emplace_back();
            if (step.loss) cells.back() = *step.loss;
            cells.insert(cells.end(), {step.host_start, step.host_end});
            rows.push_back(std::move(cells));
        }
    }
    return rows_csv({{"rank"},
                     {"step"},
                     {"start_ns"},
                     {"us"},
                     {"host_us"},
                     {"kernel_us"},
                     {"memcpy_us"},
                     {"memset_us"},
                     {"communication_us"},
                     {"runtime_us"},
                     {"dataloader_us"},
                     {"cpu_exec_us"},
                     {"other_us"},
                     {"device_events"},
                     {"device_busy_us"},
                     {"loss"},
                     {"host_start_ns"},
                     {"host_end_ns"}},
                    rows);
}

}  // namespace

std::string render(const StepsReport& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
