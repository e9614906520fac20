// See path_rows.h.
#include "viewer/panels/idle/path_rows.h"

#include <array>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/columns.h"

namespace shardscope::viewer {
namespace {

using traces::PathKind;
using traces::PathPiece;
using traces::RankPath;
using Kind = TableColumn::Kind;

CellTable::Cell step_percent(const RankPath& path, double part_us) {
    return path.average_step_us > 0 ? percent_cell(100 * part_us / path.average_step_us) : no_cell();
}

enum PieceColumn : std::size_t { number, step, kind, name, length, from, rank, waits };

}  // namespace

std::string_view path_kind_title(PathKind k) {
    static constexpr std::array<std::string_view, traces::kPathKinds> kTitles = {
        "Host", "Launch delay", "Compute", "Communication", "Copies", "Waiting", "Earlier step"};
    return kTitles[static_cast<std::size_t>(k)];
}

std::string_view path_kind_help(PathKind k) {
    static constexpr std::array<std::string_view, traces::kPathKinds> kHelp = {
        "The host computes, calls, or does what the trace does not show.",
        "From when nothing else held device work back to its start.",
        "Kernels.",
        "Collectives once all ranks take part.",
        "Copies and memsets.",
        "Collectives until the last rank takes part.",
        "The job's first rank still was in the step before."};
    return kHelp[static_cast<std::size_t>(k)];
}

Color path_kind_color(PathKind k) {
    switch (k) {
        case PathKind::host:
            return time_category_color(traces::TimeCategory::cpu_exec);
        case PathKind::launch_delay:
            return runtime_color();
        case PathKind::compute:
            return kind_color(traces::DeviceKind::kernel);
        case PathKind::communication:
            return kind_color(traces::DeviceKind::communication);
        case PathKind::memcpy:
            return kind_color(traces::DeviceKind::memcpy);
        case PathKind::waiting:
            return waiting_color();
        case PathKind::earlier_step:
            break;
    }
    return time_category_color(traces::TimeCategory::other);
}

std::string path_title(const RankPath& path) {
    return path.rank < 0 ? "Job" : fmt::format("Rank {}", path.rank);
}

std::shared_ptr<const TableModel> path_share_table(const RankPath& path, bool stepped) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "On the path", "", Kind::text, 0, 20, 0, "Kernel, runtime call or host range."},
        {"kind", "Kind", "", Kind::text, 9, 18, 0, {}},
        {"us", stepped ? "Time of a step" : "Time", "\u00b5s", Kind::number, 8, 19,
         kind_color(traces::DeviceKind::kernel), stepped ? "Mean of the kept steps." : "In the whole trace."},
        {"percent", "Share", "%", Kind::number, 5, 17, 0, stepped ? "Of the step." : "Of the whole trace."},
        {"times", "Pieces", stepped ? "a step" : "", Kind::number, 5.5F, 16, 0,
         "How often it lies on the path."},
    });
    for (const traces::PathShare& share : path.shares) {
        table->add({text_cell(share.name), text_cell(path_kind_title(share.kind)), us_cell(share.us),
                    step_percent(path, share.us), decimal_cell(share.times, 2)},
                   path_kind_color(share.kind));
    }
    return table;
}

std::shared_ptr<const TableModel> path_module_table(const RankPath& path, bool stepped) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"module", "Module", "", Kind::text, 0, 20, 0, "Without the modules inside it."},
        {"us", stepped ? "Time of a step" : "Time", "\u00b5s", Kind::number, 8, 19,
         kind_color(traces::DeviceKind::kernel),
         "On the path: what was launched, or what the host did, in the module."},
        {"percent", "Share", "%", Kind::number, 5, 18, 0, stepped ? "Of the step." : "Of the whole trace."},
    });
    for (const traces::NamedTime& module : path.modules)
        table->add({text_cell(module.name), us_cell(module.us), step_percent(path, module.us)});
    return table;
}

PathPieceTable::PathPieceTable(std::shared_ptr<const traces::Trace> trace,
                               std::shared_ptr<const traces::CriticalPathReport> report, const RankPath& path)
    : trace_(std::move(trace)), report_(std::move(report)), path_(path) {
    columns_ = {
        {"piece", "Piece", "", Kind::number, 4.5F, 20, 0, "In order of time."},
        {"step", "Step", "", Kind::number, 4, 15, 0, {}},
        {"kind", "Kind", "", Kind::text, 9, 18, 0, {}},
        {"name", "What", "", Kind::text, 0, 17, 0, "Kernel, runtime call or host range."},
        {"us", "Length", "\u00b5s", Kind::number, 7, 19, kind_color(traces::DeviceKind::kernel), {}},
        {"from_ms", "From", "ms", Kind::number, 7.5F, 16, 0, "Since the start of the capture."},
        {"rank", "Rank", "", Kind::number, 4, 12, 0, "Where it ran."},
        {"waits_for", "Waits for", "rank", Kind::number, 5.5F, 10, 0, "The last rank of a collective."},
    };
}

std::string PathPieceTable::text(std::size_t row, std::size_t column) const {
    const PathPiece& p = piece(row);
    switch (column) {
        case kind:
            return std::string(path_kind_title(p.kind));
        case name:
            return std::string(p.name);
        case length:
            return format_decimal(us(p.to - p.from), 1);
        case from:
            return format_decimal(static_cast<double>(p.from) * 1e-6, 3);
        case waits:
            return p.waits < 0 ? "-"
                               : format_count(static_cast<std::int64_t>(PathPieceTable::number(row, column)));
        default:
            return format_count(static_cast<std::int64_t>(PathPieceTable::number(row, column)));
    }
}

double PathPieceTable::number(std::size_t row, std::size_t column) const {
    const PathPiece& p = piece(row);
    switch (column) {
        case PieceColumn::number:
            return static_cast<double>(row) + 1;
        case step:
            return static_cast<double>(p.step);
        case length:
            return us(p.to - p.from);
        case from:
            return static_cast<double>(p.from) * 1e-6;
        case rank:
            return trace_->ranks[p.rank].number;
        case waits:
            return p.waits < 0 ? kNoNumber : trace_->ranks[static_cast<std::size_t>(p.waits)].number;
        default:
            return kNoNumber;
    }
}

std::vector<std::int64_t> longest_pieces(const RankPath& path) {
    std::map<std::pair<PathKind, std::string_view>, std::size_t> rows;
    for (std::size_t i = 0; i < path.shares.size(); ++i)
        rows.emplace(std::pair(path.shares[i].kind, std::string_view(path.shares[i].name)), i);
    std::vector<std::int64_t> longest(path.shares.size(), -1);
    const auto length = [&](std::int64_t piece) {
        const PathPiece& p = path.pieces[static_cast<std::size_t>(piece)];
        return p.to - p.from;
    };
    for (std::size_t i = 0; i < path.pieces.size(); ++i) {
        const auto row = rows.find({path.pieces[i].kind, path.pieces[i].name});
        if (row == rows.end()) continue;
        std::int64_t& best = longest[row->second];
        const auto piece = static_cast<std::int64_t>(i);
        if (best < 0 || length(piece) > length(best)) best = piece;
    }
    return longest;
}

std::string factors_key(const traces::PathFactors& factors) {
    std::string key;
    for (const double factor : factors) key += fmt::format("{}{:g}", key.empty() ? "" : "/", factor);
    return key;
}

std::string predicted_change(const RankPath& path) {
    return format_change(path.predicted_step_us, path.whole_step_us);
}

}  // namespace shardscope::viewer
