#include "trainer/cli/output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/summary.h"
#include "traces/report/report.h"
#include "traces/report/text_table.h"
#include "traces/schema/joined.h"
#include "traces/schema/json_text.h"
#include "trainer/cli/json_parts.h"
#include "trainer/job/keys.h"
#include "trainer/model/models.h"

namespace shardscope::trainer::cli {

namespace {

using traces::store::grouped;

constexpr double kSecondsBetweenLines = 5;

std::string duration(double seconds) {
    const std::int64_t s = std::llround(seconds);
    if (s < 60) return fmt::format("{} s", s);
    if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
    return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string count(std::int64_t n, const char* thing) {
    return fmt::format("{} {}{}", grouped(n), thing, n == 1 ? "" : "s");
}

std::string strategy(const job::Job& job) {
    switch (job.parallel.mode) {
        case job::ParallelMode::none:
            return "not sharded";
        case job::ParallelMode::ddp:
            return job.ddp.shard_optimizer ? "DDP with a sharded optimizer (ZeRO-1)" : "DDP";
        case job::ParallelMode::server: {
            const std::int64_t staleness = job.train.staleness;
            return count(job.parallel.servers, "parameter server") +
                   (staleness < 0    ? ", asynchronous"
                    : staleness == 0 ? ""
                                     : fmt::format(", at most {} ahead", count(staleness, "step")));
        }
        case job::ParallelMode::fsdp:
            break;
    }
    std::string text = "FSDP " + text_of(job, "fsdp.sharding_strategy");
    if (job.fsdp.shard_group > 0)
        text += fmt::format(" {}x{}", job.data_ranks() / job.fsdp.shard_group, job.fsdp.shard_group);
    return text + ", wrap " + to_text(job.fsdp.wrap);
}

// The options that differ from a plain PyTorch job.
std::vector<std::string> options(const job::Job& job) {
    const job::Job defaults;
    std::vector<std::string> words;
    if (job.parallel.mode == job::ParallelMode::fsdp) {
        if (job.fsdp.layout != defaults.fsdp.layout) words.push_back("layout " + text_of(job, "fsdp.layout"));
        if (job.fsdp.cpu_offload) words.emplace_back("CPU offload");
        if (job.fsdp.forward_prefetch) words.emplace_back("forward prefetch");
        if (job.fsdp.backward_prefetch != defaults.fsdp.backward_prefetch)
            words.push_back("backward prefetch " + text_of(job, "fsdp.backward_prefetch"));
        if (!job.fsdp.limit_all_gathers) words.emplace_back("no limiter");
        if (job.fsdp.sync_module_states) words.emplace_back("module states synchronised");
    }
    if (job.parallel.mode == job::ParallelMode::ddp) {
        if (job.ddp.gradient_as_bucket_view) words.emplace_back("gradients as bucket views");
        if (job.ddp.static_graph) words.emplace_back("static graph");
        if (job.ddp.comm_hook != defaults.ddp.comm_hook)
            words.push_back("gradients compressed by " + to_text(job.ddp.comm_hook));
    }
    if (job.precision.param != job::Precision::fp32 || job.precision.reduce != job::Precision::fp32) {
        words.push_back(fmt::format("parameters in {}, reduced in {}", text_of(job, "precision.param"),
                                    text_of(job, "precision.reduce")));
    }
    if (!job.memory.activation_checkpointing.names.empty())
        words.push_back("checkpointing " + to_text(job.memory.activation_checkpointing));
    if (job.memory.offload != defaults.memory.offload)
        words.push_back("offload of " + to_text(job.memory.offload));
    if (!job.memory.nvme.empty()) words.push_back("files in " + job.memory.nvme);
    if (job.train.accumulation > 1) {
        words.push_back(fmt::format("{} micro-batches per step{}", job.train.accumulation,
                                    job.train.accumulation_sync ? "" : " (no_sync)"));
    }
    if (job.train.clip_norm > 0) words.push_back(fmt::format("gradients clipped to {}", job.train.clip_norm));
    if (!job.train.freeze.names.empty()) words.push_back("frozen " + to_text(job.train.freeze));
    return words;
}

std::string model_words(const job::Job& job) {
    std::string text = job.model.name.empty() ? text_of(job, "model.type") : job.model.name;
    if (job.reads_images())
        return text + fmt::format(", width {}, images of {} × {} pixels, {} classes", job.model.width,
                                  job.data.image, job.data.image, job.data.classes);
    text += fmt::format(", {}, width {}", count(job.model.layers, "layer"), job.model.width);
    if (job.model.activation != kernels::ActivationKind::none)
        text += fmt::format(", activation {}", name_of(job.model.activation));
    if (job.model.experts > 0)
        text += fmt::format(", {} of {} experts per token", job.model.experts_per_token, job.model.experts);
    return has_tokens(job.model.type) ? text + fmt::format(", context {}", job.model.context) : text;
}

// The columns in which a line can be rewritten: a longer one would wrap.
std::size_t terminal_columns() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 78U;
}

// All digits; null for a value that is not finite, which JSON cannot express.
std::string json_loss(double loss) {
    return std::isfinite(loss) ? fmt::format("{:.17g}", loss) : "null";
}

}  // namespace

Progress::Progress(const job::Job& job, std::int64_t first_step)
    : steps_(job.run.steps),
      first_step_(first_step),
      epochs_(job.train.epochs),
      items_(job),
      terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::report(const executor::StepReport& step) {
    const std::lock_guard lock(mutex_);
    const bool last = step.step + 1 == steps_;
    const bool first = step.step == first_step_;
    if (first) first_done_ = step.seconds_since_start;
    const double pause = terminal_ ? 0.1 : kSecondsBetweenLines;
    if (!last && last_shown_ >= 0 && step.seconds_since_start - last_shown_ < pause) return;
    last_shown_ = step.seconds_since_start;
    // The first step is a warm-up; it counts only until there is another.
    const double steps_timed = first ? 1.0 : static_cast<double>(step.step - first_step_);
    const double time = first ? step.seconds_since_start : step.seconds_since_start - first_done_;
    const double per_step = time / steps_timed;
    const double left = per_step * static_cast<double>(steps_ - 1 - step.step);
    const auto rate = [&](double seconds) {
        return static_cast<double>(items_.count) / std::max(seconds, 1e-9);
    };
    const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    std::string epoch = epoch_words(step.epoch), mean = fmt::format(" (mean {:.0f})", rate(per_step)),
                memory = fmt::format("  {:.1f} MiB (peak {:.1f})", mib(step.memory.allocated),
                                     mib(step.memory.peak));
    const auto line_of_parts = [&] {
        return fmt::format("step {}/{}{}  loss {:.4f}  {:.0f} {}/s{}{}  {}", step.step + 1, steps_, epoch,
                           step.loss, rate(step.seconds > 0 ? step.seconds : per_step), items_.name, mean,
                           memory, last ? "done" : duration(left) + " left");
    };
    std::string line = line_of_parts();
    if (terminal_) {
        // A narrow terminal shows what matters most, whole.
        const std::size_t columns = terminal_columns();
        for (std::string* part : {&mean, &epoch, &memory}) {
            if (line.size() <= columns) break;
            part->clear();
            line = line_of_parts();
        }
        fmt::print(stderr, "\r{:<{}}", line.substr(0, columns), columns);
        open_ = true;
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

// "  epoch 1.50/3", or without the last if the steps were given.
std::string Progress::epoch_words(const std::optional<double>& epoch) const {
    if (!epoch) return "";
    return fmt::format("  epoch {:.2f}{}", *epoch, epochs_ > 0 ? fmt::format("/{}", epochs_) : "");
}

void Progress::report(const executor::ValidationReport& report, const char* what) {
    say(fmt::format("{} after step {}: loss {:.4f}{} over {} batch{}", what, report.step + 1, report.loss,
                    accuracy_words(report), report.batches, report.batches == 1 ? "" : "es"));
}

std::string accuracy_words(const executor::ValidationReport& report) {
    return report.accuracy ? fmt::format(", accuracy {:.2f} %", 100 * *report.accuracy) : "";
}

void Progress::say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    finish_line();
    fmt::print(stderr, "{}\n", line);
}

void Progress::end() {
    const std::lock_guard lock(mutex_);
    finish_line();
}

void Progress::finish_line() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
}

std::int64_t parameter_count(const sharding::Program& program) {
    std::int64_t total = 0;
    for (const model::Parameter* parameter : program.modules().parameters) total += parameter->whole_elements;
    return total;
}

std::string describe_run(const sharding::Program& program) {
    const job::Job& job = program.job();
    std::vector<std::string> words = {count(job.run.ranks, "rank"), strategy(job)};
    if (job.parallel.tensor > 1) {
        words.push_back(fmt::format("tensor groups of {}{}", job.parallel.tensor,
                                    job.parallel.sequence ? " with sequence parallelism" : ""));
    }
    if (job.parallel.context > 1) words.push_back(fmt::format("context groups of {}", job.parallel.context));
    if (job.parallel.expert > 1) words.push_back(fmt::format("expert groups of {}", job.parallel.expert));
    if (job.parallel.pipeline > 1) {
        const std::string each = job.parallel.virtual_stages > 1
                                     ? fmt::format(" with {} stages each", job.parallel.virtual_stages)
                                     : "";
        words.push_back(fmt::format("a pipeline of {} places{} ({})", job.parallel.pipeline, each,
                                    job.parallel.schedule));
    }
    const std::vector<std::string> more = options(job);
    words.insert(words.end(), more.begin(), more.end());
    const auto units = static_cast<std::int64_t>(program.units().size());
    return fmt::format(
        "{}; {}: {}{}", traces::schema::joined(words, ", "), model_words(job),
        count(parameter_count(program), "parameter"),
        units == 0 ? ""
                   : " in " + count(units, job.parallel.mode == job::ParallelMode::ddp ? "bucket" : "unit"));
}

std::string peak_table(const plan::MemoryPeak& peak) {
    const auto row = [&](std::string_view what, std::int64_t bytes) {
        const double share =
            peak.bytes > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(peak.bytes) : 0.0;
        return fmt::format("{:<22} {:>18} {:>12} {:>8.2f}%\n", what, grouped(bytes),
                           grouped(static_cast<double>(bytes) / (1 << 20), 1), share);
    };
    std::string out = fmt::format("{:<22} {:>18} {:>12} {:>9}\n", "At the peak", "bytes", "MiB", "share");
    for (std::size_t c = 0; c < peak.at_peak.size(); ++c)
        out += row(traces::schema::kMemoryCategoryNames[c], peak.at_peak[c]);
    out += row("total", peak.bytes);
    if (!peak.where.empty()) out += fmt::format("Reached in: {}\n", peak.where);
    return out;
}

std::string peaks_line(const executor::RunResult& run) {
    const auto mb = [](std::int64_t bytes) { return grouped(static_cast<double>(bytes) / (1 << 20), 1); };
    return fmt::format("Peaks of rank 0 in MiB: allocated {}, active {}, reserved {}\n",
                       mb(run.peaks.front().bytes), mb(run.active.front()), mb(run.reserved.front()));
}

std::string files_line(const job::Job& job, const executor::RunResult& run) {
    if (job.memory.nvme.empty() || run.file_wait_s.empty() || run.seconds <= 0) return "";
    const auto most = std::max_element(run.file_wait_s.begin(), run.file_wait_s.end());
    constexpr double kMuch = 0.25;
    const double share = *most / run.seconds;
    return fmt::format(
        "Rank {} waited {:.1f} % of the time for files in {}{}\n", most - run.file_wait_s.begin(),
        100 * share, job.memory.nvme,
        share > kMuch ? " (memory.nvme); a faster disk, or omitting the key if memory allows, saves it" : "");
}

std::string rank_zero_tables(const traces::store::Trace& trace) {
    traces::analysis::Selection rank_zero;
    rank_zero.rank = 0;
    return "\n" + render(traces::analysis::summarize(trace, rank_zero), traces::report::Format::table) +
           "\n" + render(traces::analysis::memory_report(trace, rank_zero), traces::report::Format::table);
}

std::string train_json(const executor::RunResult& run, const TrainResult& result) {
    std::string losses, seconds, ranks, waits, validation;
    const auto evaluated = [](const executor::ValidationReport& report) {
        return fmt::format("{{\"step\":{},\"loss\":{},\"batches\":{}{}}}", report.step + 1,
                           json_loss(report.loss), report.batches,
                           report.accuracy ? fmt::format(",\"accuracy\":{:.17g}", *report.accuracy) : "");
    };
    for (const double loss : run.losses) losses += (losses.empty() ? "" : ",") + json_loss(loss);
    for (const double at : run.known_at) seconds += fmt::format("{}{:.9g}", seconds.empty() ? "" : ",", at);
    for (const double wait : run.file_wait_s)
        waits += fmt::format("{}{:.9g}", waits.empty() ? "" : ",", wait);
    for (const executor::ValidationReport& report : run.validation)
        validation += (validation.empty() ? "" : ",") + evaluated(report);
    for (std::size_t r = 0; r < run.peaks.size(); ++r) {
        ranks += fmt::format(
            "{}{{\"rank\":{},\"peak_bytes\":{},\"at_peak\":{},\"active_bytes\":{},\"reserved_bytes\":{}}}",
            r ? "," : "", r, run.peaks[r].bytes,
            traces::schema::dump_json(categories_json(run.peaks[r].at_peak)), run.active[r], run.reserved[r]);
    }
    return fmt::format(
        "{{\"losses\":[{}],\"seconds\":[{}],\"average_step_us\":{:.17g},\"trace\":{},\"ranks\":[{}],"
        "\"file_wait_s\":[{}],\"validation\":[{}],\"test\":{},\"epochs\":{},"
        "\"steps_done\":{},\"stopped_at\":{},\"diverged_at\":{},\"checkpoint\":{}}}\n",
        losses, seconds, result.average_step_us, traces::schema::dump_json(nlohmann::json(result.trace)),
        ranks, waits, validation, run.test ? evaluated(*run.test) : "null",
        run.epochs ? fmt::format("{:.17g}", *run.epochs) : "null", run.steps_done,
        run.stopped_at ? std::to_string(*run.stopped_at) : "null",
        run.diverged_at ? std::to_string(*run.diverged_at) : "null",
        traces::schema::dump_json(nlohmann::json(result.checkpoint)));
}

}  // namespace shardscope::trainer::cli
