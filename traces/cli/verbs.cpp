// What the commands share, and the commands with options of their own that analyse one trace.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/training/metrics.h"
#include "traces/analysis/waits/exposed.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/report/text_table.h"
#include "traces/schema/text.h"

namespace shardscope::traces::cli {

namespace {

std::optional<schema::MemorySpace> parse_space(const std::string& text) {
    if (text.empty()) return std::nullopt;
    for (int s = 0; s < schema::kMemorySpaces; ++s) {
        if (text == schema::kMemorySpaceNames[static_cast<std::size_t>(s)])
            return static_cast<schema::MemorySpace>(s);
    }
    throw UsageError(fmt::format("--space {} is unknown; use device, pinned, host or disk", text));
}

// The text with each line made printable.
std::string for_terminal(std::string_view text) {
    std::string safe;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        safe += report::printable(text.substr(0, end));
        if (end == std::string_view::npos) break;
        safe += '\n';
        text.remove_prefix(end + 1);
    }
    return safe;
}

}  // namespace

void print(const std::string& text) {
    // CSV fields are the trace's own bytes. In a file any bytes are fine, but a terminal would obey control
    // characters.
    const std::string shown = ::isatty(STDOUT_FILENO) != 0 ? for_terminal(text) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print_notes(const std::vector<std::string>& sentences) {
    for (const std::string& note : sentences)
        fmt::print(stderr, "shardscope-trace: note: {}\n", report::printable(note));
}

const std::optional<std::size_t>& top_option(Options& options) {
    return options.count("--top", "N", "Most rows per rank, 0 for all (20 in a table, all in JSON and CSV)");
}

// Limits rows for a terminal only; programs get all of them.
std::size_t most_rows(const Inputs& inputs, const std::optional<std::size_t>& top) {
    constexpr std::size_t kRowsOfATable = 20;
    return top.value_or(inputs.format == report::Format::table ? kRowsOfATable : 0);
}

Output trace_output(Options& options) {
    const std::string& path = options.required_text("-o,--output", "OUT.sqlite", "The trace to write");
    return {path, options.flag("--overwrite", "Replace OUT.sqlite if it exists")};
}

Work summary_verb(Options& options) {
    const bool& folds =
        options.flag("--fold-communication", "Communication counts as Kernel and has no row of its own");
    return [&folds](const Inputs& inputs) {
        const auto communication =
            folds ? analysis::CommunicationAs::kernel : analysis::CommunicationAs::category;
        return analyse(inputs, [=](const store::Trace& t, const analysis::Selection& s) {
            return summarize(t, s, communication);
        });
    };
}

Work memory_verb(Options& options) {
    const bool& explain = options.flag(
        "--explain",
        "With the stored prediction and the difference next to each category, FSDP unit, module and buffer, "
        "the peak of each step, and reserved against allocated memory");
    const bool& allocations = options.flag(
        "--allocations",
        "Each allocation alive in the selected time, largest first: size, time, lifetime, category");
    const std::string& space = options.text("--space", "device|pinned|host|disk",
                                            "Only the memory of this space (device; with --allocations all)");
    const auto& top = top_option(options);
    options.excludes("--explain", "--allocations");
    options.excludes("--explain", "--space");
    options.needs("--top", "--allocations");
    return [&](const Inputs& inputs) {
        const std::optional<schema::MemorySpace> wanted = parse_space(space);
        if (explain)
            return analyse(inputs, [](const store::Trace& t, const analysis::Selection& s) {
                return explain_memory(t, s);
            });
        if (allocations) {
            return analyse(inputs, [&, most = most_rows(inputs, top)](const store::Trace& t,
                                                                      const analysis::Selection& s) {
                return allocations_report(t, s, wanted, most);
            });
        }
        return analyse(inputs, [&](const store::Trace& t, const analysis::Selection& s) {
            return memory_report(t, s, wanted ? *wanted : analysis::space_in_use(t));
        });
    };
}

namespace {

// "earlier_step" is not a kind of time that a user could change.
constexpr auto kScalable = static_cast<std::ptrdiff_t>(analysis::PathKind::earlier_step);

// Parses `--what-if communication=0.5,host=2`: factors for kinds of time. Throws UsageError if the text is
// not a list of KIND=FACTOR.
analysis::PathFactors parse_what_if(const std::string& text) {
    const auto wrong = [&](const std::string& why) {
        std::string names;
        for (std::ptrdiff_t k = 0; k < kScalable; ++k) {
            names +=
                fmt::format("{}{}", k > 0 ? ", " : "", analysis::kPathKindNames[static_cast<std::size_t>(k)]);
        }
        return UsageError(fmt::format(
            "--what-if {}: {}; write KIND=FACTOR, for example communication=0.5; the kinds are {}", text, why,
            names));
    };
    analysis::PathFactors factors = analysis::kUnscaled;
    std::string_view rest = text;
    while (true) {
        const auto comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        const auto equals = part.find('=');
        if (equals == std::string_view::npos) throw wrong(fmt::format("\"{}\" has no =", part));
        const std::string_view name = part.substr(0, equals), number = part.substr(equals + 1);
        const auto kind =
            std::find(analysis::kPathKindNames.begin(), analysis::kPathKindNames.begin() + kScalable, name) -
            analysis::kPathKindNames.begin();
        if (kind == kScalable) throw wrong(fmt::format("\"{}\" is not a kind of time", name));
        const auto factor = schema::number_of<double>(number);
        if (!factor || !(*factor >= 0 && *factor <= 1e6))
            throw wrong(fmt::format("\"{}\" is not a factor from 0 to 1000000", number));
        factors[static_cast<std::size_t>(kind)] = *factor;
        if (comma == std::string_view::npos) return factors;
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace

Work idle_verb(Options& options) {
    const double& kernel_wait_us =
        options.number("--kernel-wait-us", 30, "US",
                       "The longest gap that the device itself needs between two kernels (30)");
    return [&](const Inputs& inputs) {
        if (!(kernel_wait_us >= 0 && kernel_wait_us <= 1e12)) {
            throw UsageError(
                fmt::format("--kernel-wait-us {}: it must be from 0 to 1e12 µs", kernel_wait_us));
        }
        const std::int64_t ns = std::llround(kernel_wait_us * 1e3);
        return analyse_devices(inputs, [ns](const store::Trace& t, const analysis::Selection& s) {
            analysis::IdleReport report = idle_report(t, s, ns);
            name_gaps(t, s, report);
            return report;
        });
    };
}

Work metrics_verb(Options& options) {
    const std::string& name = options.text("--name", "NAME", "Only this metric, step by step");
    const std::string& loss = options.text("--to-loss", "LOSS", "When the loss was first so low");
    return [&](const Inputs& inputs) {
        const std::optional<double> asked = parse_loss(loss);
        return analyse(inputs, [&](const store::Trace& t, const analysis::Selection& s) {
            return metrics_report(t, s, name, asked);
        });
    };
}

Work kernels_verb(Options& options) {
    const auto& top = top_option(options);
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        return analyse_devices(inputs, [most](const store::Trace& t, const analysis::Selection& s) {
            return kernels_report(t, s, most);
        });
    };
}

Work operators_verb(Options& options) {
    const bool& by_shape = options.flag("--by-shape", "By name and the shapes of the inputs");
    const auto& top = top_option(options);
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        return analyse(inputs, [&, most](const store::Trace& t, const analysis::Selection& s) {
            return operators_report(t, s, by_shape, most);
        });
    };
}

Work critical_path_verb(Options& options) {
    const std::string& what_if = options.text("--what-if", "KIND=FACTOR,...",
                                              "What a step would take if kinds of time were scaled, for "
                                              "example communication=0.5,waiting=0");
    return [&](const Inputs& inputs) {
        std::optional<analysis::PathFactors> factors;
        if (!what_if.empty()) factors = parse_what_if(what_if);
        return analyse(inputs, [&](const store::Trace& t, const analysis::Selection& s) {
            return critical_path(t, s, factors);
        });
    };
}

}  // namespace shardscope::traces::cli
