// The critical path: its parts by rank, the events on it, and the prediction of a what-if. Times in us.
#include "traces/analysis/path/critical_path.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTopRows = 15;

std::string title(const analysis::RankPath& path) {
    return path.rank < 0 ? std::string("job") : std::to_string(path.rank);
}

std::vector<const analysis::RankPath*> all_paths(const analysis::CriticalPathReport& report) {
    std::vector<const analysis::RankPath*> paths;
    for (const analysis::RankPath& path : report.ranks) paths.push_back(&path);
    if (report.job) paths.push_back(&*report.job);
    return paths;
}

// The kinds that occur in at least one path.
std::vector<std::size_t> kinds_shown(const analysis::CriticalPathReport& report) {
    std::vector<std::size_t> kinds;
    for (std::size_t k = 0; k < analysis::kPathKinds; ++k) {
        const auto paths = all_paths(report);
        if (std::any_of(paths.begin(), paths.end(),
                        [k](const analysis::RankPath* p) { return p->average_us[k] > 0; })) {
            kinds.push_back(k);
        }
    }
    return kinds;
}

constexpr std::array<const char*, analysis::kPathKinds> kTitles = {
    "Host", "Launch delay", "Compute", "Communication", "Memcpy", "Waiting", "Earlier step"};

std::string path_parts_table(const analysis::CriticalPathReport& report, std::size_t width) {
    const std::vector<std::size_t> kinds = kinds_shown(report);
    std::vector<Align> align(3 + kinds.size(), Align::right);
    align[0] = Align::left;
    TextTable table(align);
    std::vector<std::string> header = {"Rank", "Steps", report.stepped ? "Step (µs)" : "Whole (µs)"};
    for (const std::size_t k : kinds) header.emplace_back(kTitles[k]);
    table.header(std::move(header));
    for (const analysis::RankPath* path : all_paths(report)) {
        if (path->rank < 0) table.rule();
        std::vector<std::string> cells = {title(*path),
                                          store::grouped(static_cast<std::int64_t>(path->steps.size())),
                                          us(path->average_step_us)};
        std::vector<std::string> shares = {"", "", "%"};
        for (const std::size_t k : kinds) {
            cells.push_back(us(path->average_us[k]));
            shares.push_back(percent(path->average_us[k], path->average_step_us));
        }
        table.row(std::move(cells));
        table.row(std::move(shares));
    }
    return table.text(width);
}

std::string ranks_text(const analysis::CriticalPathReport& report) {
    std::string text;
    for (const analysis::RankPath* path : all_paths(report)) {
        if (path->ranks.empty()) continue;
        text +=
            path->rank < 0 ? std::string("The job's path runs") : fmt::format("Rank {} waits", path->rank);
        const std::size_t shown = std::min<std::size_t>(path->ranks.size(), 8);
        for (std::size_t i = 0; i < shown; ++i) {
            text += fmt::format("{}{} µs {} rank {}", i > 0 ? ", " : " ", us(path->ranks[i].us),
                                path->rank < 0 ? "on" : "for", path->ranks[i].rank);
        }
        if (path->ranks.size() > shown) text += fmt::format(", {} more", path->ranks.size() - shown);
        text += "\n";
    }
    return text;
}

std::string shares_table(const analysis::RankPath& path, bool stepped, std::size_t width) {
    TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right});
    table.header({fmt::format("On the path of {}", path.rank < 0 ? "the job" : "rank " + title(path)), "Kind",
                  stepped ? "µs/step" : "µs", "%", stepped ? "times/step" : "times"});
    double left = 0;
    for (std::size_t i = 0; i < path.shares.size(); ++i) {
        const analysis::PathShare& share = path.shares[i];
        if (i >= kTopRows) {
            left += share.us;
            continue;
        }
        table.row({shortened(share.name, 56), kTitles[static_cast<std::size_t>(share.kind)], us(share.us),
                   percent(share.us, path.average_step_us), store::grouped(share.times, 2)});
    }
    if (left > 0) {
        table.row({fmt::format("({} more)", path.shares.size() - kTopRows), "", us(left),
                   percent(left, path.average_step_us)});
    }
    return table.text(width);
}

std::string modules_table(const analysis::RankPath& path, bool stepped, std::size_t width) {
    TextTable table({Align::left, Align::right, Align::right});
    table.header({"Module (self)", stepped ? "µs/step" : "µs", "%"});
    for (std::size_t i = 0; i < std::min(path.modules.size(), kTopRows); ++i) {
        table.row({shortened(path.modules[i].name, 56), us(path.modules[i].us),
                   percent(path.modules[i].us, path.average_step_us)});
    }
    return table.text(width);
}

std::string factors_text(const analysis::CriticalPathReport& report) {
    std::string text;
    for (std::size_t k = 0; k < analysis::kPathKinds; ++k) {
        if (report.factors[k] == 1) continue;
        text += fmt::format("{}{} x {:g}", text.empty() ? "" : ", ", analysis::kPathKindNames[k],
                            report.factors[k]);
    }
    return text.empty() ? "nothing scaled" : text;
}

std::string what_if_table(const analysis::CriticalPathReport& report, std::size_t width) {
    TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right});
    table.header({fmt::format("What if {}", factors_text(report)),
                  report.stepped ? "Step (µs)" : "Whole (µs)", "Predicted (µs)", "Difference (µs)", "%"});
    for (const analysis::RankPath* path : all_paths(report)) {
        const double change = path->predicted_step_us - path->whole_step_us;
        table.row({path->rank < 0 ? "job" : "rank " + title(*path), us(path->whole_step_us),
                   us(path->predicted_step_us), us(change),
                   store::grouped(path->whole_step_us > 0 ? 100 * change / path->whole_step_us : 0.0, 2)});
    }
    return table.text(width);
}

Json parts_json(const std::array<double, analysis::kPathKinds>& parts_us, double whole_us) {
    Json parts = Json::object();
    for (std::size_t k = 0; k < analysis::kPathKinds; ++k) {
        parts[std::string(analysis::kPathKindNames[k])] = {
            {"us", parts_us[k]}, {"percent", whole_us > 0 ? 100 * parts_us[k] / whole_us : 0.0}};
    }
    return parts;
}

Json path_json(const analysis::RankPath& path, bool what_if) {
    Json ranks = Json::array(), shares = Json::array(), modules = Json::array(), steps = Json::array();
    for (const analysis::RankTime& r : path.ranks) ranks.push_back({{"rank", r.rank}, {"us", r.us}});
    for (const analysis::PathShare& s : path.shares) {
        shares.push_back({{"kind", analysis::kPathKindNames[static_cast<std::size_t>(s.kind)]},
                          {"name", printable(s.name)},
                          {"us", s.us},
                          {"times", s.times}});
    }
    for (const analysis::NamedTime& m : path.modules)
        modules.push_back({{"name", printable(m.name)}, {"us", m.us}});
    for (const analysis::StepPath& step : path.steps) {
        Json parts = Json::object();
        for (std::size_t k = 0; k < analysis::kPathKinds; ++k) {
            parts[std::string(analysis::kPathKindNames[k])] = step.parts[k];
        }
        steps.push_back({{"step", step.number}, {"ns", step.ns}, {"parts_ns", std::move(parts)}});
    }
    Json json = Json::object();
    if (path.rank >= 0) json["rank"] = path.rank;
    json["steps"] = path.steps.size();
    json["average_step_us"] = path.average_step_us;
    json["parts"] = parts_json(path.average_us, path.average_step_us);
    json[path.rank < 0 ? "runs_on" : "waiting_for"] = std::move(ranks);
    json["shares"] = std::move(shares);
    json["modules"] = std::move(modules);
    if (what_if) {
        const double change = path.predicted_step_us - path.whole_step_us;
        json["what_if"] = {
            {"step_us", path.whole_step_us},
            {"predicted_step_us", path.predicted_step_us},
            {"change_percent", path.whole_step_us > 0 ? 100 * change / path.whole_step_us : 0.0}};
    }
    json["by_step"] = std::move(steps);
    return json;
}

std::string table_text(const analysis::CriticalPathReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text = path_parts_table(report, width);
    if (const std::string ranks = ranks_text(report); !ranks.empty()) text += "\n" + ranks;
    const analysis::RankPath& main = report.job ? *report.job : report.ranks.front();
    text += "\n" + shares_table(main, report.stepped, width);
    if (!main.modules.empty()) text += "\n" + modules_table(main, report.stepped, width);
    if (report.what_if) text += "\n" + what_if_table(report, width);
    text += paragraph(
        fmt::format("{} Launch delay: nothing else delayed the work (CPU ranks: it waits for a free core). "
                    "Communication counts once all ranks take part, waiting until then.",
                    report.stepped ? "Mean of the kept steps. The parts sum to the step."
                                   : "The whole trace, which has no steps. The parts sum to it."),
        width);
    if (report.clocks_disagree > 0) {
        text += paragraph(
            fmt::format("{} not overlap on the ranks' clocks; waiting is derived from durations there.",
                        store::counted(report.clocks_disagree, "collective does", "collectives do")),
            width);
    }
    return text;
}

std::string json_text(const analysis::CriticalPathReport& report) {
    Json ranks = Json::array();
    for (const analysis::RankPath& path : report.ranks) ranks.push_back(path_json(path, report.what_if));
    Json json = {{"ranks", std::move(ranks)}, {"job", nullptr}, {"clocks_disagree", report.clocks_disagree}};
    if (report.job) json["job"] = path_json(*report.job, report.what_if);
    if (report.what_if) {
        Json factors = Json::object();
        for (std::size_t k = 0; k < analysis::kPathKinds; ++k) {
            factors[std::string(analysis::kPathKindNames[k])] = report.factors[k];
        }
        json["factors"] = std::move(factors);
    }
    return json_line(json);
}

std::string csv_text(const analysis::CriticalPathReport& report) {
    std::vector<Column> columns = {{"rank"}, {"step"}, {"step_us"}};
    for (const auto kind : analysis::kPathKindNames) columns.push_back({fmt::format("{}_us", kind)});
    if (report.what_if) columns.push_back({"predicted_step_us"});
    std::vector<std::vector<store::Cell>> rows;
    for (const analysis::RankPath* path : all_paths(report)) {
        for (const analysis::StepPath& step : path->steps) {
            std::vector<store::Cell> row = {title(*path), step.number, static_cast<double>(step.ns) * 1e-3};
            for (const std::int64_t ns : step.parts) row.emplace_back(static_cast<double>(ns) * 1e-3);
            if (report.what_if) row.emplace_back(step.predicted_ns * 1e-3);
            rows.push_back(std::move(row));
        }
    }
    return rows_csv(columns, rows);
}

}  // namespace

std::string render(const analysis::CriticalPathReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
