// The caching allocator's reserved memory; see reserved_fields(), failed_request_fields() and
// device_account_fields().
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/memory/allocator_report.h"
#include "traces/report/memory_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::string check_text(const analysis::SegmentCheck& check, std::size_t width) {
    if (check.is_equal()) {
        return paragraph(
            fmt::format("The replay equals the recording: {} taken and returned alike, {} at the end, the "
                        "peak {} MiB; {} of {} at the recorded address.",
                        store::counted(check.recorded_changes, "segment", "segments"),
                        store::counted(check.recorded_segments, "segment", "segments"),
                        mb(check.recorded_peak), store::grouped(check.at_recorded_address),
                        store::counted(check.allocations, "allocation", "allocations")),
            width);
    }
    return paragraph(
        fmt::format(
            "The replay differs from the recording: peak {} MiB recorded, {} MiB replayed; at the end {} "
            "recorded and {} replayed, {} of them equal; {} of {} at the recorded address. {}",
            mb(check.recorded_peak), mb(check.replayed_peak),
            store::counted(check.recorded_segments, "segment", "segments"),
            store::grouped(check.replayed_segments), store::grouped(check.equal_segments),
            store::grouped(check.at_recorded_address),
            store::counted(check.allocations, "allocation", "allocations"), check.difference),
        width);
}

std::string head_of(const analysis::RankAllocator& rank, std::size_t width) {
    std::string text = fmt::format("Rank {}: {}; recorded settings: {}", rank.rank,
                                   store::counted(rank.requests, "allocation", "allocations"), rank.settings);
    text += rank.limit > 0 ? fmt::format("; the allocator could have {} MiB", mb(rank.limit))
                           : "; the device did not run out of memory";
    return paragraph(text, width);
}

constexpr std::size_t kMostFailuresShown = 40;

std::string fits_text(const analysis::FailedRequest& failure) {
    if (!failure.fits) return "unknown";
    return *failure.fits ? fmt::format("yes, with {} MiB left", mb(failure.left.value_or(0)))
                         : fmt::format("no, {} MiB are missing", mb(-failure.left.value_or(0)));
}

std::string failures_text(const analysis::RankAllocator& rank, std::size_t width) {
    if (rank.failures.empty()) return {};
    std::string text = "\nRequests that failed, and whether they would have fitted\n" +
                       text_of(failed_requests_table(rank), width, 3);
    if (rank.failures.size() > kMostFailuresShown)
        text +=
            fmt::format("{} more; --format json has all.\n",
                        store::grouped(static_cast<std::int64_t>(rank.failures.size() - kMostFailuresShown)));
    return text;
}

std::string account_text(const analysis::RankAllocator& rank, std::size_t width) {
    if (rank.account.empty()) return {};
    std::string text =
        "\nThe device's memory: allocated + cached + NCCL + context + other = used; - unknown\n" +
        text_of(result_table(analysis::device_account_fields(), rank.account), width);
    const bool used =
        std::any_of(rank.account.begin(), rank.account.end(),
                    [](const analysis::DeviceAccount& account) { return account.used.has_value(); });
    if (!used) {
        text += paragraph(
            "What the device uses beyond the allocator is not in this trace: record NVML's counters "
            "(shardscope-record) or the device's total.",
            width);
    }
    return text;
}

std::string table_text(const analysis::AllocatorReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text = "Cached: reserved, but in no block that the program has.\n";
    for (const analysis::RankAllocator& rank : report.ranks) {
        if (rank.requests == 0) {
            text += fmt::format(
                "\nRank {}: no history of allocations with addresses on a device, so nothing to replay\n",
                rank.rank);
            continue;
        }
        text += '\n' + head_of(rank, width);
        if (rank.check) text += check_text(*rank.check, width);
        text += '\n' + text_of(result_table(analysis::reserved_fields(), rank.reserved), width);
        for (const analysis::ReservedRow& row : rank.reserved) {
            if (!row.note.empty()) text += paragraph(row.settings + ": " + row.note + ".", width);
        }
        text += failures_text(rank, width) + account_text(rank, width);
        if (!rank.assumptions.empty()) text += '\n';
        for (const std::string& sentence : rank.assumptions) text += paragraph(sentence, width);
    }
    return text;
}

Json check_json(const analysis::SegmentCheck& check) {
    return {{"equal", check.is_equal()},
            {"recorded_peak_bytes", check.recorded_peak},
            {"replayed_peak_bytes", check.replayed_peak},
            {"recorded_segments", check.recorded_segments},
            {"replayed_segments", check.replayed_segments},
            {"equal_segments", check.equal_segments},
            {"recorded_changes", check.recorded_changes},
            {"equal_changes", check.equal_changes},
            {"allocations", check.allocations},
            {"at_recorded_address", check.at_recorded_address},
            {"difference", check.difference.empty() ? Json(nullptr) : Json(check.difference)}};
}

std::string json_text(const analysis::AllocatorReport& report) {
    return ranks_line(report.ranks, [](const analysis::RankAllocator& rank) {
        return Json{{"rank", rank.rank},
                    {"settings", rank.settings},
                    {"limit_bytes", known_or_null(rank.limit)},
                    {"requests", rank.requests},
                    {"check", rank.check ? check_json(*rank.check) : Json(nullptr)},
                    {"reserved", json_of(result_table(analysis::reserved_fields(), rank.reserved))},
                    {"failures", json_of(result_table(analysis::failed_request_fields(), rank.failures))},
                    {"account", json_of(result_table(analysis::device_account_fields(), rank.account))},
                    {"assumptions", rank.assumptions}};
    });
}

std::string csv_text(const analysis::AllocatorReport& report) {
    return csv_of(by_rank(analysis::reserved_fields(), report.ranks, &analysis::RankAllocator::reserved));
}

}  // namespace

analysis::ResultTable failed_requests_table(const analysis::RankAllocator& rank) {
    analysis::ResultTable table = empty_table(analysis::failed_request_fields());
    const auto fits = static_cast<std::size_t>(
        std::find_if(table.columns.begin(), table.columns.end(),
                     [](const analysis::ResultColumn& column) { return column.key == "fits"; }) -
        table.columns.begin());
    for (const analysis::FailedRequest& failure : rank.failures) {
        if (table.rows.size() == kMostFailuresShown) break;
        add_cells(table.rows.emplace_back(), analysis::failed_request_fields(), failure);
        table.rows.back()[fits] = fits_text(failure);
    }
    return without(std::move(table), {"left_bytes"});
}

std::string render(const analysis::AllocatorReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
