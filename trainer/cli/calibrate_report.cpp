#include "trainer/cli/calibrate_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"

namespace shardscope::trainer::cli {

namespace {

using calibrate::Calibration;
using traces::report::Align;
using traces::store::grouped;

std::string percent(double share) {
    return fmt::format("{:.1f}", 100 * share);
}

std::string residual_table(const Calibration& fitted) {
    traces::report::TextTable table(
        {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right}, 2);
    table.header({"work", "type", "count", "of the time (%)", "median error (%)", "90th percentile (%)"});
    for (const calibrate::Residual& own : fitted.residuals) {
        table.row({own.name, own.arithmetic.empty() ? "-" : own.arithmetic, grouped(own.count),
                   percent(own.share), percent(own.median_error), percent(own.p90_error)});
    }
    return table.text();
}

std::string step_table(const Calibration& fitted) {
    traces::report::TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right});
    table.header({"trace", "steps", "measured (µs)", "simulated (µs)", "error (%)"});
    for (const calibrate::StepResidual& own : fitted.steps) {
        table.row({own.file, grouped(own.steps), grouped(own.measured_s * 1e6, 0),
                   grouped(own.simulated_s * 1e6, 0), fmt::format("{:+.1f}", 100 * own.error())});
    }
    return table.text();
}

// What was found of the links between pairs of ranks.
std::string links_line(const Calibration& fitted) {
    const bool alike = fitted.cluster.links == sim::PairLinks();
    return fmt::format("Links: {} pairs were measured; {}\n", grouped(fitted.pairs),
                       alike ? "they are alike within their spread, so [intra] and [inter] have their figures"
                             : "they differ, so [links] has a figure for each");
}

// Keys whose figures come from the base model because no trace shows them: "host.grow", …
std::vector<std::string> taken_from_base(const Calibration& fitted) {
    std::vector<std::string> keys;
    for (const auto& [key, note] : fitted.notes) {
        if (note.starts_with("from " + fitted.base)) keys.push_back(key);
    }
    return keys;
}

}  // namespace

std::string calibration_table(const Calibration& fitted, const std::string& file) {
    std::string base;
    for (const std::string& key : taken_from_base(fitted)) base += (base.empty() ? "" : ", ") + key;
    std::string out = fmt::format(
        "Kernels, copies and collectives compared with the fitted model: error is |model - measured| / "
        "measured\n\n"
        "{}\n",
        residual_table(fitted));
    if (!fitted.steps.empty())
        out += fmt::format("Steps: the measured median and the one that the model simulates\n\n{}\n",
                           step_table(fitted));
    if (fitted.pairs > 0) out += links_line(fitted);
    if (!base.empty())
        out += traces::report::paragraph(
            fmt::format("From {}, since no trace shows it: {}", fitted.base, base), 110);
    return out + fmt::format("Model: {0}    use it with: --run.device=sim --sim.cluster={0}\n", file);
}

std::string calibration_json(const Calibration& fitted, const std::string& file) {
    nlohmann::ordered_json json;
    json["model"] = file;
    json["base"] = fitted.base;
    json["from_base"] = taken_from_base(fitted);
    json["pairs"] = fitted.pairs;
    json["pairs_alike"] = fitted.cluster.links == sim::PairLinks();
    json["residuals"] = json["steps"] = nlohmann::ordered_json::array();
    for (const calibrate::Residual& own : fitted.residuals) {
        json["residuals"].push_back({{"work", own.name},
                                     {"type", own.arithmetic},
                                     {"count", own.count},
                                     {"share", own.share},
                                     {"median_error", own.median_error},
                                     {"p90_error", own.p90_error}});
    }
    for (const calibrate::StepResidual& own : fitted.steps) {
        json["steps"].push_back({{"trace", own.file},
                                 {"steps", own.steps},
                                 {"measured_us", own.measured_s * 1e6},
                                 {"simulated_us", own.simulated_s * 1e6},
                                 {"error", own.error()}});
    }
    return traces::schema::dump_json(json) + "\n";
}

}  // namespace shardscope::trainer::cli
