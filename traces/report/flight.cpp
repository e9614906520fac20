// What flight recorders recorded, as a table, JSON and CSV.
#include "traces/analysis/communication/flight.h"

#include <span>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/store/grouped.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

// Sorted numbers as "0-3,7".
std::string number_ranges(std::span<const int> numbers) {
    std::string text;
    for (std::size_t i = 0, next = 0; i < numbers.size(); i = next) {
        for (next = i + 1; next < numbers.size() && numbers[next] == numbers[next - 1] + 1;) ++next;
        if (!text.empty()) text += ',';
        text += std::to_string(numbers[i]);
        if (next > i + 1) text += fmt::format("{}{}", next > i + 2 ? '-' : ',', numbers[next - 1]);
    }
    return text.empty() ? "-" : text;
}

std::string ranks_of(std::span<const analysis::FlightPlace> places) {
    std::vector<int> ranks;
    ranks.reserve(places.size());
    for (const analysis::FlightPlace& place : places) ranks.push_back(place.rank);
    return number_ranges(ranks);
}

std::string called(const analysis::FlightGroup& group) {
    return group.description.empty() ? group.name : fmt::format("{} ({})", group.name, group.description);
}

std::string group_table(const analysis::FlightReport& report, std::size_t width) {
    TextTable table({Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
                     Align::left, Align::left, Align::left});
    table.header({"Group", "Ranks", "No dump", "Recorded", "Done by all", "Stopped at", "Operation",
                  "Missing", "Waiting"});
    const auto number = [](std::int64_t n) { return n < 0 ? "-" : store::grouped(n); };
    for (const analysis::FlightGroup& g : report.groups) {
        table.row({called(g), number_ranges(g.ranks), number_ranges(g.without_dump),
                   g.first_sequence < 0 ? "-" : fmt::format("{}-{}", g.first_sequence, g.last_sequence),
                   number(g.completed_everywhere), g.stopped ? number(g.stop.sequence) : "-",
                   g.stopped ? std::string(name(g.stop.operation)) : "-", ranks_of(g.stop.missing),
                   ranks_of(g.stop.waiting)});
    }
    return table.text(width);
}

// The place in the program: the most informative frame of the stack.
std::string where(const analysis::FlightPlace& place) {
    return store::short_frame(store::asking_frame(place.stack));
}

std::string record(const analysis::FlightPlace& place) {
    if (place.sequence < 0) return "no record";
    return fmt::format("{} {}, {}", place.name, place.sequence, name(place.state));
}

constexpr std::size_t kShownPlaces = 24;

std::string stop_table(const analysis::FlightGroup& group, std::size_t width) {
    TextTable table({Align::right, Align::left, Align::left, Align::left, Align::left});
    table.header({"Rank", "Here", "Latest record", "Sizes", "At"});
    std::size_t left = 0;
    const auto add = [&](const std::vector<analysis::FlightPlace>& places, const char* here, bool missing) {
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (i >= kShownPlaces) {
                left += places.size() - i;
                return;
            }
            const analysis::FlightPlace& place = places[i];
            std::string latest = record(place);
            if (missing && place.sequence >= 0 && place.group != group.name)
                latest += " (group " + place.group + ")";
            table.row({std::to_string(place.rank), here, latest, place.sizes, where(place)});
        }
    };
    add(group.stop.missing, "never came", true);
    add(group.stop.waiting, "waits", false);
    add(group.stop.completed, "completed", false);
    std::string text = fmt::format("\n{}, collective {}: {}\n", printable("Group " + called(group)),
                                   group.stop.sequence, name(group.stop.operation)) +
                       table.text(width);
    if (left > 0) {
        text += fmt::format("... {} more; --rank or --format csv shows the rest\n",
                            store::counted(static_cast<std::int64_t>(left), "rank", "ranks"));
    }
    return text;
}

std::string mismatch_table(const analysis::FlightGroup& group, std::size_t width) {
    TextTable table({Align::right, Align::left, Align::left, Align::left, Align::left});
    table.header({"Collective", "Differs in", "Is", "On ranks", "At"});
    for (const analysis::FlightMismatch& mismatch : group.mismatches) {
        for (std::size_t v = 0; v < mismatch.variants.size(); ++v) {
            table.row({v == 0 ? std::to_string(mismatch.sequence) : "", v == 0 ? mismatch.what : "",
                       mismatch.variants[v].text, number_ranges(mismatch.variants[v].ranks),
                       where(mismatch.places[v])});
        }
    }
    std::string text = fmt::format("\n{}: ranks disagree {} time{}\n", printable("Group " + called(group)),
                                   group.mismatch_count, group.mismatch_count == 1 ? "" : "s");
    return text + table.text(width);
}

std::string pending_table(const analysis::FlightGroup& group, std::size_t width) {
    TextTable table({Align::right, Align::left, Align::right, Align::left, Align::left, Align::left});
    table.header({"Rank", "Send or receive", "Number", "State", "Sizes", "At"});
    for (std::size_t i = 0; i < group.pending.size() && i < kShownPlaces; ++i) {
        const analysis::FlightPlace& p = group.pending[i];
        table.row({std::to_string(p.rank), p.name, std::to_string(p.sequence), std::string(name(p.state)),
                   p.sizes, where(p)});
    }
    std::string text =
        fmt::format("\n{}: {} not completed\n", printable("Group " + called(group)), group.pending.size());
    return text + table.text(width);
}

Json place_json(const analysis::FlightPlace& place) {
    const auto known = [](std::int64_t value) { return value < 0 ? Json(nullptr) : Json(value); };
    return {{"rank", place.rank},
            {"sequence", known(place.sequence)},
            {"group", place.group},
            {"operation", std::string(name(place.operation))},
            {"name", place.name},
            {"state", place.sequence < 0 ? Json(nullptr) : Json(std::string(name(place.state)))},
            {"sizes", place.sizes},
            {"data_type", place.data_type},
            {"input_bytes", known(place.input_bytes)},
            {"output_bytes", known(place.output_bytes)},
            {"created_ns", place.created_ns},
            {"timeout_ms", known(place.timeout_ms)},
            {"stack", place.stack}};
}

Json flight_places_json(const std::vector<analysis::FlightPlace>& places) {
    Json json = Json::array();
    for (const analysis::FlightPlace& place : places) json.push_back(place_json(place));
    return json;
}

Json mismatches_json(const std::vector<analysis::FlightMismatch>& mismatches) {
    Json json = Json::array();
    for (const analysis::FlightMismatch& mismatch : mismatches) {
        Json variants = Json::array();
        for (std::size_t v = 0; v < mismatch.variants.size(); ++v) {
            variants.push_back({{"is", mismatch.variants[v].text},
                                {"ranks", mismatch.variants[v].ranks},
                                {"stack", mismatch.places[v].stack}});
        }
        json.push_back({{"sequence", mismatch.sequence}, {"what", mismatch.what}, {"variants", variants}});
    }
    return json;
}

Json group_json(const analysis::FlightGroup& group) {
    const auto known = [](std::int64_t value) { return value < 0 ? Json(nullptr) : Json(value); };
    Json json = {{"name", group.name},
                 {"description", group.description},
                 {"ranks", group.ranks},
                 {"without_dump", group.without_dump},
                 {"first_sequence", known(group.first_sequence)},
                 {"last_sequence", known(group.last_sequence)},
                 {"completed_everywhere", known(group.completed_everywhere)},
                 {"stop", nullptr},
                 {"mismatch_count", group.mismatch_count},
                 {"mismatches", mismatches_json(group.mismatches)},
                 {"pending", flight_places_json(group.pending)}};
    if (!group.stopped) return json;
    Json held_up = Json::array();
    for (const int other : group.held_up_in) held_up.push_back(other < 0 ? Json(nullptr) : Json(other));
    json["stop"] = {{"sequence", group.stop.sequence},
                    {"operation", std::string(name(group.stop.operation))},
                    {"name", group.stop.name},
                    {"missing", flight_places_json(group.stop.missing)},
                    {"held_up_in", std::move(held_up)},
                    {"waiting", flight_places_json(group.stop.waiting)},
                    {"completed", flight_places_json(group.stop.completed)}};
    return json;
}

std::string table_text(const analysis::FlightReport& report, std::size_t width) {
    if (report.groups.empty()) return "The flight recorder has no record in the current selection.\n";
    std::string text = fmt::format("NCCL flight recorder: dumps of {} rank{} ({})\n", report.ranks.size(),
                                   report.ranks.size() == 1 ? "" : "s", number_ranges(report.ranks));
    for (const std::string& sentence : report.verdict) text += printable(sentence) + "\n";
    if (report.verdict.empty())
        text += "No collective stopped: all ranks completed what any of them recorded.\n";
    text += "\n" + group_table(report, width);
    for (const analysis::FlightGroup& group : report.groups) {
        if (group.stopped) text += stop_table(group, width);
        if (!group.mismatches.empty()) text += mismatch_table(group, width);
        if (!group.pending.empty()) text += pending_table(group, width);
    }
    return text;
}

std::string json_text(const analysis::FlightReport& report) {
    Json groups = Json::array();
    for (const analysis::FlightGroup& group : report.groups) groups.push_back(group_json(group));
    return json_line({{"ranks", report.ranks}, {"verdict", report.verdict}, {"groups", std::move(groups)}});
}

std::string csv_text(const analysis::FlightReport& report) {
    std::vector<std::vector<store::Cell>> rows;
    for (const analysis::FlightGroup& group : report.groups) {
        const auto known = [](std::int64_t value) { return value < 0 ? store::Cell() : store::Cell(value); };
        const auto add = [&](const char* what, std::int64_t sequence,
                             const std::vector<analysis::FlightPlace>& places) {
            for (const analysis::FlightPlace& p : places) {
                rows.push_back({group.name, group.description, std::string(what), known(sequence),
                                store::Cell(std::int64_t{p.rank}), known(p.sequence), p.group, p.name,
                                p.sequence < 0 ? store::Cell() : store::Cell(std::string(name(p.state))),
                                p.sizes, p.data_type, known(p.input_bytes), known(p.output_bytes),
                                p.created_ns, where(p)});
            }
        };
        add("missing", group.stop.sequence, group.stop.missing);
        add("waiting", group.stop.sequence, group.stop.waiting);
        add("completed", group.stop.sequence, group.stop.completed);
        for (const analysis::FlightMismatch& mismatch : group.mismatches)
            add(("mismatch of " + mismatch.what).c_str(), mismatch.sequence, mismatch.places);
        add("pending", -1, group.pending);
    }
    return rows_csv({{"group"},
                     {"description"},
                     {"what"},
                     {"sequence"},
                     {"rank"},
                     {"record_sequence"},
                     {"record_group"},
                     {"record"},
                     {"state"},
                     {"sizes"},
                     {"data_type"},
                     {"input_bytes"},
                     {"output_bytes"},
                     {"created_ns"},
                     {"at"}},
                    rows);
}

}  // namespace

std::string render(const analysis::FlightReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
