#include "trainer/cli/bench_report.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "trainer/cli/footnotes.h"

namespace shardscope::trainer::cli {

namespace {

using traces::report::Align;
using traces::store::grouped;

// "Img/sec", as people know it.
std::string unit_of(const BenchResult& result) {
    if (result.items == "images") return "Img/sec";
    return result.items == "tokens" ? "Tokens/sec" : "Samples/sec";
}

const BenchRun* one_rank(const BenchResult& result, const std::string& engine) {
    for (const BenchRun& run : result.runs)
        if (run.ranks == 1 && run.engine == engine && run.error.empty()) return &run;
    return nullptr;
}

}  // namespace

double BenchRates::mean() const {
    return std::accumulate(of_iterations.begin(), of_iterations.end(), 0.0) /
           static_cast<double>(of_iterations.size());
}

double BenchRates::plus_minus() const {
    double squares = 0;
    for (const double rate : of_iterations) squares += (rate - mean()) * (rate - mean());
    return 1.96 * std::sqrt(squares / static_cast<double>(of_iterations.size()));
}

BenchRates rates_of(const std::vector<double>& done, const BenchLength& length, double items) {
    BenchRates rates;
    for (int i = 0; i < length.iterations; ++i) {
        const auto first = static_cast<std::size_t>(length.warm_up + std::int64_t{i} * length.steps);
        const double seconds =
            done.at(first + static_cast<std::size_t>(length.steps) - 1) - done.at(first - 1);
        rates.of_iterations.push_back(items * length.steps / seconds);
    }
    return rates;
}

void compare_with_one_rank(BenchResult& result) {
    for (BenchRun& run : result.runs) {
        const BenchRun* one = one_rank(result, run.engine);
        if (!one && run.engine != "nccl") one = one_rank(result, "local");
        if (one && run.error.empty()) run.efficiency = run.rates.mean() / one->rates.mean();
    }
}

std::string bench_text(const BenchResult& result, const BenchRun& run) {
    std::string text = fmt::format("{}{}Batch size: {} per rank and micro-batch\nNumber of ranks: {} ({})\n",
                                   run.description, run.description.empty() ? "" : "\n", result.batch,
                                   run.ranks, run.engine);
    if (!run.error.empty()) return text + "Not measured: " + run.error + "\n";
    const std::string unit = unit_of(result);
    for (std::size_t i = 0; i < run.rates.of_iterations.size(); ++i)
        text += fmt::format("Iter #{}: {:.1f} {} per rank\n", i, run.rates.of_iterations[i], unit);
    return text +
           fmt::format("{0} per rank: {1:.1f} +-{2:.1f}\nTotal {0} on {3} rank(s): {4:.1f} +-{5:.1f}\n", unit,
                       run.rates.mean(), run.rates.plus_minus(), run.ranks, run.ranks * run.rates.mean(),
                       run.ranks * run.rates.plus_minus());
}

std::string bench_table(const BenchResult& result) {
    const std::string unit = unit_of(result);
    traces::report::TextTable table(
        {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::left}, 2);
    table.header({"engine", "ranks", unit + " per rank", "+-1.96 sigma", "total", "efficiency %", "note"});
    Footnotes notes;
    for (const BenchRun& run : result.runs) {
        const bool ran = run.error.empty();
        const auto number = [&](double value) { return ran ? grouped(value, 1) : std::string("-"); };
        table.row({run.engine, std::to_string(run.ranks), number(run.rates.mean()),
                   number(run.rates.plus_minus()), number(run.ranks * run.rates.mean()),
                   run.efficiency ? grouped(100 * *run.efficiency, 1) : "-",
                   ran ? "" : notes.cell("not measured", run.error)});
    }
    return table.text() + notes.text() +
           fmt::format(
               "{} iterations of {} steps after {} of warm-up; efficiency: the total over "
               "that of one rank, times "
               "the ranks.\n",
               result.length.iterations, result.length.steps, result.length.warm_up);
}

std::string bench_json(const BenchResult& result) {
    nlohmann::ordered_json json = {{"items", result.items},
                                   {"batch", result.batch},
                                   {"warm_up_steps", result.length.warm_up},
                                   {"iterations", result.length.iterations},
                                   {"steps_per_iteration", result.length.steps},
                                   {"runs", nlohmann::ordered_json::array()}};
    for (const BenchRun& run : result.runs) {
        nlohmann::ordered_json row = {
            {"engine", run.engine}, {"ranks", run.ranks}, {"description", run.description}};
        if (run.error.empty()) {
            row["per_rank_by_iteration"] = run.rates.of_iterations;
            row["per_rank"] = run.rates.mean();
            row["plus_minus"] = run.rates.plus_minus();
            row["total"] = run.ranks * run.rates.mean();
            row["efficiency"] = nullptr;
            if (run.efficiency) row["efficiency"] = *run.efficiency;
            row["error"] = nullptr;
        } else {
            row["error"] = run.error;
        }
        json["runs"].push_back(std::move(row));
    }
    return traces::schema::dump_json(json, 2) + "\n";
}

}  // namespace shardscope::trainer::cli
