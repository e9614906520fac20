#include "trainer/cli/output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "trainer/model/models.h"
#include "trainer/plan/print.h"

namespace shardscope::trainer {

namespace {

constexpr double kSecondsBetweenLines = 5;

std::string duration(double seconds) {
    const std::int64_t s = std::llround(seconds);
    if (s < 60) return fmt::format("{} s", s);
    if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
    return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::int64_t parameter_count(const Program& program) {
    std::int64_t total = 0;
    for (const Parameter* parameter : program.modules().parameters) total += parameter->elements;
    return total;
}

PlanLabels labels_of(const Program& program) {
    PlanLabels labels;
    for (const UnitInfo& unit : program.units()) labels.units.push_back(unit.name);
    for (const Module* module : program.modules().modules) labels.modules.push_back(module->name);
    return labels;
}

nlohmann::ordered_json categories_json(const CategoryBytes& bytes) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < bytes.size(); ++c)
        json[std::string(traces::kMemoryCategoryNames[c])] = bytes[c];
    return json;
}

}  // namespace

Progress::Progress(const Job& job) : steps_(job.run.steps), terminal_(isatty(STDERR_FILENO) == 1) {
    const BatchShape shape = batch_shape(job);
    items_ = shape.tokens > 0 ? "tokens" : "samples";
    items_per_step_ = static_cast<double>((shape.tokens > 0 ? shape.tokens : shape.samples) * job.run.ranks);
}

void Progress::report(const StepReport& step) {
    const bool last = step.step + 1 == steps_;
    if (step.step == 0) first_done_ = step.seconds_since_start;
    const double pause = terminal_ ? 0.1 : kSecondsBetweenLines;
    if (!last && last_shown_ >= 0 && step.seconds_since_start - last_shown_ < pause) return;
    last_shown_ = step.seconds_since_start;
    // The first step warms up; it counts only while there is no other.
    const double steps_timed = step.step > 0 ? static_cast<double>(step.step) : 1.0;
    const double time = step.step > 0 ? step.seconds_since_start - first_done_ : step.seconds_since_start;
    const double per_step = time / steps_timed;
    const double left = per_step * static_cast<double>(steps_ - 1 - step.step);
    const std::string line = fmt::format("step {}/{}  loss {:.4f}  {:.0f} {}/s  {}", step.step + 1, steps_,
                                         step.loss, items_per_step_ / std::max(per_step, 1e-9), items_,
                                         last ? "done" : duration(left) + " left");
    if (terminal_) {
        fmt::print(stderr, "\r{:<78}", line);
        open_ = true;
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

void Progress::end() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
}

std::string describe_run(const Program& program) {
    const Job& job = program.job();
    std::string mode = "one rank, not sharded";
    if (job.parallel.mode == ParallelMode::fsdp) {
        mode = fmt::format("{} rank{}, FSDP FULL_SHARD, wrap {}", job.run.ranks,
                           job.run.ranks == 1 ? "" : "s", to_text(job.fsdp.wrap));
    } else if (job.parallel.mode == ParallelMode::ddp) {
        mode = fmt::format("{} ranks, DDP", job.run.ranks);
    }
    const std::string units = program.units().empty()
                                  ? ""
                                  : fmt::format(" in {} {}{}", program.units().size(),
                                                job.parallel.mode == ParallelMode::ddp ? "bucket" : "unit",
                                                program.units().size() == 1 ? "" : "s");
    return fmt::format("{}; {} of {} layers, width {}: {} parameters{}", mode,
                       job.model.type == ModelType::mlp ? "mlp" : "gpt", job.model.layers, job.model.width,
                       with_thousands(parameter_count(program)), units);
}

std::string peak_table(const MemoryPeak& peak) {
    std::string out =
        fmt::format("{:<22} {:>15} {:>12} {:>9}\n", "At the peak", "bytes", "MB (2^20)", "share");
    for (std::size_t c = 0; c < peak.at_peak.size(); ++c) {
        out += fmt::format(
            "{:<22} {:>15} {:>12.1f} {:>8.2f}%\n", traces::kMemoryCategoryNames[c],
            with_thousands(peak.at_peak[c]), static_cast<double>(peak.at_peak[c]) / (1 << 20),
            peak.bytes > 0 ? 100.0 * static_cast<double>(peak.at_peak[c]) / static_cast<double>(peak.bytes)
                           : 0.0);
    }
    out += fmt::format("{:<22} {:>15} {:>12.1f} {:>8.2f}%\n", "total", with_thousands(peak.bytes),
                       static_cast<double>(peak.bytes) / (1 << 20), 100.0);
    if (!peak.where.empty()) out += fmt::format("Reached in: {}\n", peak.where);
    return out;
}

std::string dry_run_text(const Program& program) {
    const PlanLabels labels = labels_of(program);
    std::string out = describe_run(program) + "\n\n";
    if (!program.units().empty()) {
        const bool buckets = program.job().parallel.mode == ParallelMode::ddp;
        out += fmt::format("{:<4} {:<24} {:<28} {:>14} {:>10} {:>15}\n", buckets ? "#" : "unit", "name",
                           "module", "elements", "padding", "bytes per rank");
        for (std::size_t u = 0; u < program.units().size(); ++u) {
            const UnitInfo& unit = program.units()[u];
            out += fmt::format("{:<4} {:<24} {:<28} {:>14} {:>10} {:>15}\n", u, unit.name,
                               labels.modules[static_cast<std::size_t>(unit.module)],
                               with_thousands(unit.elements),
                               with_thousands(unit.padded_elements - unit.elements),
                               with_thousands(unit.shard_elements * std::int64_t{sizeof(float)}));
        }
        out += "\n";
    }
    std::int64_t live = 0;
    const auto section = [&](const std::string& title, const Plan& plan) {
        out += title + "\n" + print_plan(plan, labels, live) + "\n";
    };
    section("Set-up", program.setup());
    for (std::size_t i = 0; i < program.warm_up_steps(); ++i)
        section(fmt::format("Step {}", i), program.step(i));
    section(fmt::format("Steady step (from step {})", program.warm_up_steps()),
            program.step(program.warm_up_steps()));
    const MemoryPeak peak = program.predict_peak();
    out += fmt::format("Predicted peak per rank: {} bytes, {}\n", with_thousands(peak.bytes),
                       megabytes(peak.bytes));
    return out + peak_table(peak);
}

std::string dry_run_json(const Program& program) {
    nlohmann::ordered_json json;
    const MemoryPeak peak = program.predict_peak();
    json["predicted_peak_bytes"] = peak.bytes;
    json["at_peak"] = categories_json(peak.at_peak);
    json["where"] = peak.where;
    json["parameters"] = parameter_count(program);
    json["units"] = nlohmann::ordered_json::array();
    for (const UnitInfo& unit : program.units()) {
        json["units"].push_back({{"name", unit.name},
                                 {"elements", unit.elements},
                                 {"padded_elements", unit.padded_elements},
                                 {"shard_bytes", unit.shard_elements * std::int64_t{sizeof(float)}}});
    }
    const Plan& steady = program.step(program.warm_up_steps());
    nlohmann::ordered_json collectives = nlohmann::ordered_json::object();
    std::int64_t flops = 0;
    for (const Op& op : steady.ops) {
        flops += op.flops;
        if (op.kind != OpKind::collective) continue;
        auto& entry = collectives[std::string(traces::name(op.collective))];
        if (entry.is_null()) entry = {{"count", std::int64_t{0}}, {"bytes", std::int64_t{0}}};
        entry["count"] = entry["count"].get<std::int64_t>() + 1;
        entry["bytes"] = entry["bytes"].get<std::int64_t>() + op.bytes;
    }
    json["steady_step"] = {{"operations", steady.ops.size()}, {"flops", flops}, {"collectives", collectives}};
    return json.dump(2) + "\n";
}

std::string train_json(const RunResult& run, const TrainResult& result) {
    std::string losses, ranks;
    for (const double loss : run.losses) {
        losses += losses.empty() ? "" : ",";
        losses +=
            std::isfinite(loss) ? fmt::format("{:.17g}", loss) : "null";  // JSON has no other word for it
    }
    for (std::size_t r = 0; r < run.peaks.size(); ++r) {
        ranks += fmt::format("{}{{\"rank\":{},\"peak_bytes\":{},\"at_peak\":{},\"reserved_bytes\":{}}}",
                             r ? "," : "", r, run.peaks[r].bytes,
                             categories_json(run.peaks[r].at_peak).dump(), run.reserved[r]);
    }
    return fmt::format("{{\"losses\":[{}],\"average_step_us\":{:.17g},\"trace\":{},\"ranks\":[{}]}}\n",
                       losses, result.average_step_us, nlohmann::json(result.trace).dump(), ranks);
}

}  // namespace shardscope::trainer
