// Memory explained, for people: what `memory --explain` prints. Measured values are next to predicted ones;
// the totals below each table are the sums of its rows. MB = 2^20 bytes.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/memory_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string plural(std::int64_t count, std::string_view one) {
    return fmt::format("{} {}{}", grouped(count), one, count == 1 ? "" : "s");
}

void append_prediction_header(std::vector<std::string>& header) {
    header.insert(header.end(), {"Predicted (bytes)", "(MB)", "Difference (bytes)", "(MB)", "(%)"});
}

// With a plus sign if it is positive; what rounds to 0 has no sign.
std::string signed_text(std::int64_t value, const std::string& text) {
    return value > 0 && text.find_first_of("123456789") != std::string::npos ? "+" + text : text;
}

// The cells below those headers.
void append_prediction(std::vector<std::string>& cells, std::int64_t bytes, std::int64_t predicted) {
    cells.insert(cells.end(), {grouped(predicted), mb(predicted)});
    const std::int64_t more = bytes - predicted;
    if (more == 0) {
        cells.insert(cells.end(), 3, "=");
        return;
    }
    cells.insert(cells.end(), {signed_text(more, grouped(more)), signed_text(more, mb(more))});
    cells.push_back(predicted == 0 ? "-"
                                   : signed_text(more, grouped(difference_percent(bytes, predicted), 2)));
}

// A table of parts that sum to the peak: bytes, MB, share, and the prediction for them, if known.
class PartsTable {
  public:
    PartsTable(std::string_view title, std::int64_t peak, bool predicted)
        : table_(alignments(predicted)), peak_(peak), predicted_(predicted) {
        std::vector<std::string> header = {std::string(title), "Bytes", "MB", "Share (%)"};
        if (predicted) append_prediction_header(header);
        table_.header(std::move(header));
    }

    void add(std::string_view name, std::int64_t bytes, std::int64_t predicted) {
        sum_ += bytes;
        predicted_sum_ += predicted;
        row(name, bytes, predicted);
    }

    // Ends the table with the sums of its rows.
    std::string text(std::size_t width) {
        table_.rule();
        row("total", sum_, predicted_sum_);
        return table_.text(width);
    }

  private:
    static std::vector<Align> alignments(bool predicted) {
        std::vector<Align> align(predicted ? 9 : 4, Align::right);
        align.front() = Align::left;
        return align;
    }

    void row(std::string_view name, std::int64_t bytes, std::int64_t predicted) {
        std::vector<std::string> cells = {std::string(name), grouped(bytes), mb(bytes),
                                          percent(bytes, peak_)};
        if (predicted_) append_prediction(cells, bytes, predicted);
        table_.row(std::move(cells));
    }

    TextTable table_;
    std::int64_t peak_;
    bool predicted_;
    std::int64_t sum_ = 0, predicted_sum_ = 0;
};

constexpr std::size_t kShownParts = 16, kPartWidth = 64;

// The largest parts, and the rest in one row, so that the total covers all.
std::string parts_table(std::string_view title, const std::vector<MemoryHolder>& all, std::int64_t peak,
                        std::size_t width) {
    if (all.empty()) return {};
    PartsTable table(title, peak, all.front().predicted.has_value());
    const std::size_t shown = all.size() <= kShownParts + 1 ? all.size() : kShownParts;
    for (std::size_t i = 0; i < shown; ++i)
        table.add(shortened(all[i].name, kPartWidth), all[i].bytes, all[i].predicted.value_or(0));
    std::int64_t rest = 0, predicted_rest = 0;
    for (std::size_t i = shown; i < all.size(); ++i) {
        rest += all[i].bytes;
        predicted_rest += all[i].predicted.value_or(0);
    }
    if (shown < all.size()) {
        table.add(fmt::format("… {} more", all.size() - shown), rest, predicted_rest);
    }
    return "\n" + table.text(width);
}

std::string category_table(const RankMemory& rank, std::size_t width) {
    PartsTable table("By category", rank.peak_bytes,
                     rank.predicted_peak_bytes >= 0 && rank.prediction_applies);
    for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
        table.add(kMemoryCategoryNames[c], rank.at_peak[c], rank.predicted_at_peak[c]);
    }
    return "\n" + table.text(width);
}

// --- the moment ----------------------------------------------------------------------------------------

constexpr int kShownFrames = 6;

std::string moment_line(const RankMemory& rank, const PeakMoment& moment, std::size_t width) {
    std::string line = fmt::format("Rank {}: peak {} MB ({} bytes) at {} ms", rank.rank, mb(rank.peak_bytes),
                                   grouped(rank.peak_bytes), milliseconds(rank.peak_time_ns));
    if (moment.step) line += fmt::format(", in step {}", *moment.step);
    if (moment.phase != Phase::none) line += fmt::format(", {}", name(moment.phase));
    if (moment.bytes > 0) {
        line += fmt::format("; reached by allocating {} MB", mb(moment.bytes));
        if (!moment.buffer.empty()) line += fmt::format(" for \"{}\"", printable(moment.buffer));
        if (!moment.annotation.empty()) line += fmt::format(" under {}", printable(moment.annotation));
        std::string owner;
        if (!moment.unit.empty()) owner += "unit " + printable(moment.unit);
        if (!moment.module.empty()) {
            owner += (owner.empty() ? "module " : ", module ") + printable(moment.module);
        }
        if (!owner.empty()) line += " (" + owner + ")";
    }
    line = paragraph(line, width);
    // The program's frames, innermost first: as many as show the way to the place.
    std::string_view rest = moment.stack;
    for (int shown = 0; shown < kShownFrames && !rest.empty();) {
        const std::size_t end = rest.find('\n');
        const std::string_view frame = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (frame.find(".py:") == std::string_view::npos) continue;
        line += fmt::format("    {}\n", shortened(short_frame(frame), 100));
        ++shown;
    }
    return line;
}

std::string prediction_line(const RankMemory& rank, std::size_t width) {
    if (rank.predicted_peak_bytes < 0) return "No prediction of the memory account is stored.\n";
    std::string line = fmt::format("Predicted by the memory account: {} MB ({} bytes)",
                                   mb(rank.predicted_peak_bytes), grouped(rank.predicted_peak_bytes));
    if (!rank.prediction_applies && rank.predicted_of_steps >= 0) {
        line = fmt::format(
                   "Predicted by the memory account for the steps shown: {} MB ({} bytes); {} MB ({} bytes)",
                   mb(rank.predicted_of_steps), grouped(rank.predicted_of_steps),
                   mb(rank.predicted_peak_bytes), grouped(rank.predicted_peak_bytes)) +
               since_step(rank);
    }
    if (!rank.predicted_where.empty()) line += fmt::format(", in {}", printable(rank.predicted_where));
    if (!rank.prediction_applies) {
        if (rank.predicted_of_steps < 0)
            line += "; of the whole run, whose peak may be outside the current selection";
    } else if (!rank.units.empty() && !rank.units.front().predicted) {
        line += "; stored by category only";
    }
    return paragraph(line, width);
}

// --- steps ---------------------------------------------------------------------------------------------

bool alike(const StepMemory& a, const StepMemory& b) {
    return a.peak_bytes == b.peak_bytes && a.active_bytes == b.active_bytes &&
           a.reserved_bytes == b.reserved_bytes && a.predicted == b.predicted && a.growths == b.growths;
}

// One row for each run of steps that are alike.
std::string step_table(const std::vector<StepMemory>& steps, std::size_t width) {
    if (steps.empty()) return {};
    const auto any = [&](auto member) {
        return std::any_of(steps.begin(), steps.end(),
                           [&](const StepMemory& s) { return (s.*member).has_value(); });
    };
    const bool active = any(&StepMemory::active_bytes);
    const bool reserved = any(&StepMemory::reserved_bytes);
    const bool predicted = any(&StepMemory::predicted);
    std::vector<std::string> header = {"By step", "Peak allocated (bytes)", "(MB)"};
    if (active) header.emplace_back("Active (MB)");
    if (reserved) header.emplace_back("Reserved (MB)");
    if (predicted) append_prediction_header(header);
    header.emplace_back("Pool grew (times)");
    std::vector<Align> align(header.size(), Align::right);
    align.front() = Align::left;
    TextTable table(align);
    table.header(std::move(header));
    const auto optional_mb = [](const std::optional<std::int64_t>& b) { return b ? mb(*b) : "-"; };
    for (std::size_t i = 0, next = 0; i < steps.size(); i = next) {
        for (next = i + 1; next < steps.size() && alike(steps[i], steps[next]);) ++next;
        const StepMemory& step = steps[i];
        std::vector<std::string> cells = {next == i + 1
                                              ? fmt::format("{}", step.step)
                                              : fmt::format("{} to {}", step.step, steps[next - 1].step),
                                          grouped(step.peak_bytes), mb(step.peak_bytes)};
        if (active) cells.push_back(optional_mb(step.active_bytes));
        if (reserved) cells.push_back(optional_mb(step.reserved_bytes));
        if (predicted && step.predicted) append_prediction(cells, step.peak_bytes, *step.predicted);
        if (predicted && !step.predicted) cells.insert(cells.end(), 5, "-");
        cells.push_back(grouped(step.growths));
        table.row(std::move(cells));
    }
    return "\n" + table.text(width);
}

// --- the pool ------------------------------------------------------------------------------------------

std::string pool_text(const RankMemory& rank, const PoolMemory& pool, bool has_steps, std::size_t width) {
    TextTable table({Align::left, Align::right, Align::right});
    table.header({"Reserved against allocated", "Bytes", "MB"});
    const auto add = [&](const std::string& name, std::int64_t bytes) {
        table.row({name, grouped(bytes), mb(bytes)});
    };
    if (rank.until_last_use) {
        if (pool.allocated_peak_bytes)
            add("allocated, peak (in the host's order)", *pool.allocated_peak_bytes);
        add("active, peak (until the last stream used it)", rank.peak_bytes);
    } else {
        add("allocated, peak (in the host's order)", rank.peak_bytes);
    }
    if (pool.active_peak_bytes) add("active, peak (until the last stream used it)", *pool.active_peak_bytes);
    if (pool.reserved_peak_bytes) {
        add("reserved, peak (held by the pool)", *pool.reserved_peak_bytes);
        const char* counted = rank.until_last_use ? "active" : "allocated";
        add(fmt::format("reserved when {} is at its peak", counted), pool.reserved_at_peak);
        add(fmt::format("  of that cached: beyond what is {}", counted), pool.cached_at_peak);
        add(fmt::format("most {} while reserved is at its peak", counted), pool.allocated_at_reserved_peak);
        if (pool.active_at_reserved_peak)
            add("most active while reserved is at its peak", *pool.active_at_reserved_peak);
    }
    std::string text = "\n" + table.text(width);
    if (pool.reserved_peak_bytes) {
        text +=
            fmt::format("Fragmentation: {} % of the reserved peak was never {} at the same time",
                        grouped(pool.fragmentation_percent, 2), rank.until_last_use ? "active" : "allocated");
        if (pool.active_at_reserved_peak) {
            const std::int64_t never = *pool.reserved_peak_bytes - *pool.active_at_reserved_peak;
            text += fmt::format(", {} % never active", percent(never, *pool.reserved_peak_bytes));
        }
        text += ".\n";
    } else {
        text += "Reserved memory was not recorded.\n";
    }
    text += fragmentation_line(rank);
    text += fmt::format(
        "The pool grew {} (cudaMalloc){}.\n", plural(pool.growths, "time"),
        has_steps ? fmt::format(", {} of them in steps", grouped(pool.growths_in_steps)) : std::string());
    return text;
}

Json optional_json(const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
}

// Measured next to predicted; null if nothing is predicted; the percentage is null also if the prediction is
// 0.
Json explained(Json row, std::int64_t bytes, const std::optional<std::int64_t>& predicted) {
    row["bytes"] = bytes;
    row["predicted_bytes"] = optional_json(predicted);
    row["difference_bytes"] = predicted ? Json(bytes - *predicted) : Json(nullptr);
    row["difference_percent"] =
        predicted.value_or(0) != 0 ? Json(difference_percent(bytes, *predicted)) : Json(nullptr);
    return row;
}

Json explained_holders(const std::vector<MemoryHolder>& all) {
    Json json = Json::array();
    for (const MemoryHolder& h : all) json.push_back(explained({{"name", h.name}}, h.bytes, h.predicted));
    return json;
}

Json explained_categories(const RankMemory& rank) {
    const bool predicted = rank.predicted_peak_bytes >= 0 && rank.prediction_applies;
    Json json = Json::array();
    for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
        json.push_back(explained({{"name", std::string(kMemoryCategoryNames[c])}}, rank.at_peak[c],
                                 predicted ? std::optional(rank.predicted_at_peak[c]) : std::nullopt));
    }
    return json;
}

Json moment_json(const PeakMoment& moment) {
    return {{"step", optional_json(moment.step)},
            {"phase", std::string(name(moment.phase))},
            {"buffer", moment.buffer},
            {"unit", moment.unit},
            {"module", moment.module},
            {"annotation", moment.annotation},
            {"stack", moment.stack},
            {"bytes", moment.bytes}};
}

Json pool_json(const RankMemory& rank, const PoolMemory& pool) {
    const bool known = pool.reserved_peak_bytes.has_value();
    const auto where_known = [&](auto value) { return known ? Json(value) : Json(nullptr); };
    return {{"allocated_peak_bytes",
             rank.until_last_use ? optional_json(pool.allocated_peak_bytes) : Json(rank.peak_bytes)},
            {"active_peak_bytes",
             rank.until_last_use ? Json(rank.peak_bytes) : optional_json(pool.active_peak_bytes)},
            {"reserved_peak_bytes", optional_json(pool.reserved_peak_bytes)},
            {"reserved_at_peak_bytes", where_known(pool.reserved_at_peak)},
            {"cached_at_peak_bytes", where_known(pool.cached_at_peak)},
            {"allocated_at_reserved_peak_bytes", where_known(pool.allocated_at_reserved_peak)},
            {"active_at_reserved_peak_bytes", optional_json(pool.active_at_reserved_peak)},
            {"fragmentation_percent", where_known(pool.fragmentation_percent)},
            {"growths", pool.growths},
            {"growths_in_steps", pool.growths_in_steps}};
}

std::string table_text(const MemoryExplanation& explanation, std::size_t width) {
    if (explanation.ranks.empty()) return std::string(kNothingSelected);
    const bool active = std::any_of(explanation.ranks.begin(), explanation.ranks.end(),
                                    [](const RankExplanation& r) { return r.memory.until_last_use; });
    std::string text = paragraph(
        counted_title(active) + "; MB = 2^20 bytes, difference = measured - predicted, \"=\" the same",
        width);
    for (const RankExplanation& explained : explanation.ranks) {
        const RankMemory& rank = explained.memory;
        if (rank.units.empty() && rank.peak_bytes == 0 && rank.predicted_peak_bytes < 0) {
            text += fmt::format("\nRank {}: nothing allocated here, or allocations were not recorded\n",
                                rank.rank);
            continue;
        }
        text += '\n' + moment_line(rank, explained.moment, width) + prediction_line(rank, width) +
                spaces_and_failures(rank) + growth_text(rank, width);
        text += category_table(rank, width);
        // Memory that is attributed by annotations and stacks has no units, and then a table whose holders
        // have no names is omitted.
        const bool foreign = !rank.annotations.empty() || !rank.stacks.empty();
        for (const auto& [title, holders] : {std::pair("By unit", &rank.units),
                                             {"By module", &rank.modules},
                                             {"By buffer", &rank.buffers}}) {
            if (!foreign || names_somebody(*holders))
                text += parts_table(title, *holders, rank.peak_bytes, width);
        }
        text += parts_table("By annotation", rank.annotations, rank.peak_bytes, width);
        text += parts_table("By frame of the program", rank.stacks, rank.peak_bytes, width);
        text += step_table(explained.steps, width);
        text += pool_text(rank, explained.pool, !explained.steps.empty(), width);
    }
    return text;
}

std::string json_text(const MemoryExplanation& explanation) {
    return ranks_line(explanation.ranks, [](const RankExplanation& rank) {
        Json json = memory_json(rank.memory);
        json["space"] = name(MemorySpace::device);
        json["prediction_applies"] = rank.memory.predicted_peak_bytes >= 0 && rank.memory.prediction_applies;
        json["moment"] = moment_json(rank.moment);
        json["categories"] = explained_categories(rank.memory);
        json["units"] = explained_holders(rank.memory.units);
        json["modules"] = explained_holders(rank.memory.modules);
        json["buffers"] = explained_holders(rank.memory.buffers);
        Json steps = Json::array();
        for (const StepMemory& step : rank.steps) {
            Json row = explained({{"step", step.step}}, step.peak_bytes, step.predicted);
            row["active_bytes"] = optional_json(step.active_bytes);
            row["reserved_bytes"] = optional_json(step.reserved_bytes);
            row["growths"] = step.growths;
            steps.push_back(std::move(row));
        }
        json["steps"] = std::move(steps);
        json["pool"] = pool_json(rank.memory, rank.pool);
        return json;
    });
}

std::string csv_text(const MemoryExplanation& explanation) {
    std::vector<std::vector<Cell>> rows;
    for (const RankExplanation& explained : explanation.ranks) {
        const RankMemory& rank = explained.memory;
        const auto add = [&](const char* by, std::string_view name, std::int64_t bytes,
                             std::optional<std::int64_t> predicted, std::vector<Cell> more = {}) {
            std::vector<Cell> row = {to_cell(rank.rank), to_cell(by), to_cell(name), bytes};
            row.resize(7);
            if (predicted) {
                row[4] = *predicted;
                row[5] = bytes - *predicted;
                if (*predicted != 0) row[6] = difference_percent(bytes, *predicted);
            }
            row.insert(row.end(), more.begin(), more.end());
            row.resize(11);
            rows.push_back(std::move(row));
        };
        const auto cell = [](std::optional<std::int64_t> bytes) { return bytes ? Cell(*bytes) : Cell(); };
        const PoolMemory& pool = explained.pool;
        const bool predicted = rank.predicted_peak_bytes >= 0 && rank.prediction_applies;
        const auto where_predicted = [&](std::int64_t bytes) {
            return predicted ? std::optional(bytes) : std::nullopt;
        };
        add("peak", "total", rank.peak_bytes, where_predicted(rank.predicted_peak_bytes),
            {cell(pool.active_peak_bytes), cell(pool.reserved_peak_bytes), pool.growths,
             pool.reserved_peak_bytes ? Cell(pool.fragmentation_percent) : Cell()});
        for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
            add("category", kMemoryCategoryNames[c], rank.at_peak[c],
                where_predicted(rank.predicted_at_peak[c]));
        }
        for (const auto& [by, holders] : {std::pair("unit", &rank.units),
                                          {"module", &rank.modules},
                                          {"buffer", &rank.buffers},
                                          {"annotation", &rank.annotations},
                                          {"stack", &rank.stacks}}) {
            for (const MemoryHolder& holder : *holders) add(by, holder.name, holder.bytes, holder.predicted);
        }
        for (const StepMemory& step : explained.steps) {
            add("step", std::to_string(step.step), step.peak_bytes, step.predicted,
                {cell(step.active_bytes), cell(step.reserved_bytes), step.growths});
        }
        if (!pool.reserved_peak_bytes) continue;
        add("pool", "reserved_at_peak", pool.reserved_at_peak, {});
        add("pool", "cached_at_peak", pool.cached_at_peak, {});
        add("pool", "allocated_at_reserved_peak", pool.allocated_at_reserved_peak, {});
        if (pool.active_at_reserved_peak) {
            add("pool", "active_at_reserved_peak", *pool.active_at_reserved_peak, {});
        }
    }
    return rows_csv(csv_columns({"rank", "by", "name", "bytes", "predicted_bytes", "difference_bytes",
                                 "difference_percent", "active_bytes", "reserved_bytes", "growths",
                                 "fragmentation_percent"}),
                    rows);
}

}  // namespace

std::string render(const MemoryExplanation& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
