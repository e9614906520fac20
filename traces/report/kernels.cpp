// Kernels by name; see kernel_fields().
#include "traces/analysis/time/kernels.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces {

using Json = nlohmann::ordered_json;

namespace {

std::string table_text(const KernelsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankKernels& rank : report.ranks) {
        if (!text.empty()) text += '\n';
        text += fmt::format("Rank {}: {} of {}, {} us", rank.rank, counted(rank.count, "kernel", "kernels"),
                            counted(rank.distinct, "name", "names"), us(to_us(rank.total)));
        const auto shown = static_cast<std::int64_t>(rank.kernels.size());
        if (shown < rank.distinct) text += fmt::format("; the first {}", grouped(shown));
        text += '\n';
        if (shown > 0) text += text_of(result_table(kernel_fields(), rank.kernels), width);
    }
    return text;
}

std::string json_text(const KernelsReport& report) {
    Json ranks = Json::array();
    for (const RankKernels& rank : report.ranks) {
        ranks.push_back({{"rank", rank.rank},
                         {"distinct", rank.distinct},
                         {"count", rank.count},
                         {"us", to_us(rank.total)},
                         {"kernels", json_of(result_table(kernel_fields(), rank.kernels))}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const KernelsReport& report) {
    return csv_of(by_rank(kernel_fields(), report.ranks, &RankKernels::kernels));
}

}  // namespace

std::string render(const KernelsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
