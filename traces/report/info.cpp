// What a trace contains.
#include "traces/analysis/facts/info.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/hosts.h"
#include "traces/report/print.h"
#include "traces/store/sqlite/no_space.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::string pairs_table(const std::vector<std::pair<std::string, std::string>>& pairs, Align values) {
    TextTable table({Align::left, values});
    for (const auto& [key, value] : pairs) table.row({key, value});
    return table.text();
}

// Values and notes are not shortened, since they are last in their lines.
std::string table_text(const analysis::TraceInfo& info, std::size_t /*width*/) {
    std::string_view unfinished = "killed, or still running";
    for (const auto& [key, value] : info.config) {
        if (key == store::kStoppedBecause) unfinished = value;
    }
    std::vector<std::pair<std::string, std::string>> facts = {
        {"File", info.file},
        {"Schema",
         info.schema_version > 0 ? std::to_string(info.schema_version) : "not written by Shardscope"},
        {"State", info.ended ? "ended" : fmt::format("did not end ({})", unfinished)},
        {"Started (UTC)", info.started_utc.empty() ? "unknown" : info.started_utc},
        {"Duration (ms)", store::grouped(info.duration_ms, 3)},
        {"Ranks", std::to_string(info.ranks)},
        {"Steps", store::grouped(info.steps)},
        {"Device", info.device.empty() ? "unknown" : info.device},
        {"Dropped events", store::grouped(info.dropped)},
    };
    const auto after_ranks =
        std::find_if(facts.begin(), facts.end(), [](const auto& f) { return f.first == "Steps"; });
    if (const std::string by_host = ranks_by_host(info.hosts); !by_host.empty())
        facts.insert(after_ranks, {"Hosts", by_host});
    if (info.stopped.stopped) facts.emplace_back("Stopped", stop_sentence(info.stopped));
    std::string text = pairs_table(facts, Align::left);
    if (!info.device_note.empty()) text += "\n" + info.device_note + "\n";
    std::vector<std::pair<std::string, std::string>> counts;
    for (const auto& [what, count] : info.counts) counts.emplace_back(what, store::grouped(count));
    text += "\nRows\n" + pairs_table(counts, Align::right);
    if (!info.config.empty()) text += "\nConfiguration\n" + pairs_table(info.config, Align::left);
    if (info.noted.empty()) return text;
    constexpr std::size_t kMostNoted = 100;  // the last ones are shown, since a crash is reported last
    const std::size_t first = info.noted.size() > kMostNoted ? info.noted.size() - kMostNoted : 0;
    text += "\nReported by the recorder (ms)\n";
    if (first > 0)
        text += fmt::format("{} before these are in DIAGNOSTIC_EVENT\n", store::grouped(std::int64_t(first)));
    TextTable noted({Align::right, Align::left});
    for (std::size_t i = first; i < info.noted.size(); ++i) {
        noted.row({store::grouped(info.noted[i].time_ms, 3), info.noted[i].text});
    }
    return text + noted.text();
}

std::string json_text(const analysis::TraceInfo& info) {
    Json counts = Json::object();
    for (const auto& [what, count] : info.counts) counts[what] = count;
    Json noted = Json::array();
    for (const analysis::TraceInfo::Noted& note : info.noted) {
        noted.push_back({{"time_ms", note.time_ms}, {"text", note.text}});
    }
    return json_line({{"file", info.file},
                      {"schema_version", info.schema_version},
                      {"ended", info.ended},
                      {"dropped", info.dropped},
                      {"started_utc", info.started_utc},
                      {"duration_ms", info.duration_ms},
                      {"ranks", info.ranks},
                      {"steps", info.steps},
                      {"device", info.device.empty() ? Json() : Json(info.device)},
                      {"device_note", info.device_note},
                      {"hosts", places_json(info.hosts)},
                      {"stopped", stopped_json(info.stopped)},
                      {"counts", std::move(counts)},
                      {"config", json_pairs(info.config)},
                      {"noted", std::move(noted)}});
}

std::string csv_text(const analysis::TraceInfo& info) {
    std::vector<std::vector<store::Cell>> rows = {
        {analysis::to_cell("file"), info.file},
        {analysis::to_cell("schema_version"), analysis::to_cell(info.schema_version)},
        {analysis::to_cell("ended"), analysis::to_cell(info.ended ? "true" : "false")},
        {analysis::to_cell("dropped"), info.dropped},
        {analysis::to_cell("started_utc"), info.started_utc},
        {analysis::to_cell("duration_ms"), info.duration_ms},
        {analysis::to_cell("ranks"), analysis::to_cell(info.ranks)},
        {analysis::to_cell("steps"), info.steps},
        {analysis::to_cell("device"), info.device},
        {analysis::to_cell("device_note"), info.device_note}};
    for (const auto& [what, count] : info.counts) rows.push_back({what, count});
    for (const auto& [key, value] : info.config) rows.push_back({key, value});
    for (const analysis::TraceInfo::Noted& note : info.noted) {
        rows.push_back({fmt::format("noted at {:.3f} ms", note.time_ms), note.text});
    }
    return rows_csv({{"key"}, {"value"}}, rows);
}

}  // namespace

std::string render(const analysis::TraceInfo& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
