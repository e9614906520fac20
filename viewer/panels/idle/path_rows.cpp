// See path_rows.h.
#include "viewer/panels/idle/path_rows.h"

#include <array>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::PathKind;
using traces::analysis::PathPiece;
using traces::analysis::RankPath;
using Kind = tables::TableColumn::Kind;

struct KindLook {
    std::string_view title, help;
    theme::Color (*color)();
};
constexpr std::array<KindLook, traces::analysis::kPathKinds> kKinds = {{
    {"Host", "The host computes, calls, or does what the trace does not show.",
     [] { return theme::time_category_color(traces::analysis::TimeCategory::cpu_exec); }},
    {"Launch delay", "From when device work could have started until it did.", theme::runtime_color},
    {"Compute", "Kernels.", [] { return theme::kind_color(traces::store::DeviceKind::kernel); }},
    {"Communication", "Collectives once all ranks take part.",
     [] { return theme::kind_color(traces::store::DeviceKind::communication); }},
    {"Copies", "Copies and memsets.", [] { return theme::kind_color(traces::store::DeviceKind::memcpy); }},
    {"Waiting", "Collectives until the last rank takes part.", theme::waiting_color},
    {"Earlier step", "The job's first rank was still in the previous step.",
     [] { return theme::time_category_color(traces::analysis::TimeCategory::other); }},
}};

tables::CellTable::Cell step_percent(const RankPath& path, double part_us) {
    return path.average_step_us > 0 ? tables::percent_cell(100 * part_us / path.average_step_us)
                                    : tables::no_cell();
}

}  // namespace

std::string_view path_kind_title(PathKind k) {
    return kKinds[static_cast<std::size_t>(k)].title;
}

std::string_view path_kind_help(PathKind k) {
    return kKinds[static_cast<std::size_t>(k)].help;
}

theme::Color path_kind_color(PathKind k) {
    return kKinds[static_cast<std::size_t>(k)].color();
}

std::string path_title(const RankPath& path) {
    return path.rank < 0 ? "Job" : fmt::format("Rank {}", path.rank);
}

std::shared_ptr<const tables::TableModel> path_share_table(const RankPath& path, bool stepped) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"name", "On the path", "", Kind::text, 0, 20, 0, "Kernel, runtime call or host range."},
        {"kind", "Kind", "", Kind::text, 9, 18, 0, {}},
        {"us", stepped ? "Time per step" : "Time", "\u00b5s", Kind::number, 8, 19,
         theme::kind_color(traces::store::DeviceKind::kernel),
         stepped ? "Mean of the kept steps." : "In the whole trace."},
        {"percent", "Share", "%", Kind::number, 5, 17, 0, stepped ? "Of the step." : "Of the whole trace."},
        {"times", "Pieces", stepped ? "per step" : "", Kind::number, 5.5F, 16, 0,
         "How often it lies on the path."},
    });
    for (const traces::analysis::PathShare& share : path.shares) {
        table->add(
            {tables::text_cell(share.name), tables::text_cell(path_kind_title(share.kind)),
             tables::us_cell(share.us), step_percent(path, share.us), tables::decimal_cell(share.times, 2)},
            path_kind_color(share.kind));
    }
    return table;
}

std::shared_ptr<const tables::TableModel> path_module_table(const RankPath& path, bool stepped) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"module", "Module", "", Kind::text, 0, 20, 0, "Without the modules inside it."},
        {"us", stepped ? "Time per step" : "Time", "\u00b5s", Kind::number, 8, 19,
         theme::kind_color(traces::store::DeviceKind::kernel),
         "On the path: what was launched, or what the host did, in the module."},
        {"percent", "Share", "%", Kind::number, 5, 18, 0, stepped ? "Of the step." : "Of the whole trace."},
    });
    for (const traces::analysis::NamedTime& module : path.modules)
        table->add(
            {tables::text_cell(module.name), tables::us_cell(module.us), step_percent(path, module.us)});
    return table;
}

PathPieceTable::PathPieceTable(std::shared_ptr<const traces::store::Trace> trace,
                               std::shared_ptr<const traces::analysis::CriticalPathReport> report,
                               const RankPath& path)
    : tables::LazyTable(path.pieces.size()),
      trace_(std::move(trace)),
      report_(std::move(report)),
      path_(path) {
    const auto number_of = [this](traces::store::RankIndex rank) {
        return static_cast<double>(trace_->ranks[rank.at()].number);
    };
    cells_.add(tables::number_column("piece", "Piece", "", 4.5F, 20, 0, "In order of time."), 0,
               [](std::size_t row) { return static_cast<double>(row) + 1; });
    cells_.add(tables::number_column("step", "Step", "", 4, 15), 0,
               [this](std::size_t row) { return static_cast<double>(piece(row).step); });
    cells_.add(tables::text_column("kind", "Kind", 9, 18),
               [this](std::size_t row) { return std::string(path_kind_title(piece(row).kind)); });
    cells_.add(tables::text_column("name", "What", 0, 17, "Kernel, runtime call or host range."),
               [this](std::size_t row) { return std::string(piece(row).name); });
    cells_.add(tables::number_column("us", "Length", tables::kMicro, 7, 19,
                                     theme::kind_color(traces::store::DeviceKind::kernel)),
               1, [this](std::size_t row) { return tables::us(piece(row).to - piece(row).from); });
    cells_.add(tables::number_column("from_ms", "From", "ms", 7.5F, 16, 0, "Since the start of the capture."),
               3, [this](std::size_t row) { return static_cast<double>(piece(row).from) * 1e-6; });
    cells_.add(tables::number_column("rank", "Rank", "", 4, 12, 0, "Where it ran."), 0,
               [this, number_of](std::size_t row) { return number_of(piece(row).rank); });
    cells_.add(tables::number_column("waits_for", "Waits for", "rank", 5.5F, 10, 0,
                                     "The last rank of a collective."),
               0, [this, number_of](std::size_t row) {
                   const auto waits = piece(row).waits;
                   return waits.known() ? number_of(waits) : tables::kNoNumber;
               });
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

std::string factors_key(const traces::analysis::PathFactors& factors) {
    std::string key;
    for (const double factor : factors) key += fmt::format("{}{:g}", key.empty() ? "" : "/", factor);
    return key;
}

std::string predicted_change(const RankPath& path) {
    return draw::format_change(path.predicted_step_us, path.whole_step_us);
}

}  // namespace shardscope::viewer::panels
