// Small shared functions, and the commands that show what a trace contains and where its memory went.
#include <cstdio>
#include <string_view>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/analysis/memory/allocations_report.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/time/summary.h"
#include "traces/cli/analyse.h"
#include "traces/cli/verb.h"
#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

std::optional<MemorySpace> parse_space(const std::string& text) {
    if (text.empty()) return std::nullopt;
    for (int s = 0; s < kMemorySpaces; ++s) {
        if (text == kMemorySpaceNames[static_cast<std::size_t>(s)]) return static_cast<MemorySpace>(s);
    }
    throw UsageError(fmt::format("--space {} is unknown; use device, pinned or host", text));
}

// The text with each line made printable.
std::string for_terminal(std::string_view text) {
    std::string safe;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        safe += printable(text.substr(0, end));
        if (end == std::string_view::npos) break;
        safe += '\n';
        text.remove_prefix(end + 1);
    }
    return safe;
}

}  // namespace

void print(const std::string& text) {
    // Fields of CSV are as they are in the trace. Any bytes are fine in a file, but a terminal would obey
    // control characters.
    const std::string shown = ::isatty(STDOUT_FILENO) != 0 ? for_terminal(text) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print_notes(const std::vector<std::string>& sentences) {
    for (const std::string& note : sentences)
        fmt::print(stderr, "shardscope-trace: note: {}\n", printable(note));
}

const std::optional<std::size_t>& top_option(Options& options) {
    return options.count("--top", "N", "Most rows per rank, 0 for all (20 in a table, all in JSON and CSV)");
}

// A terminal shows some rows; programs get all of them.
std::size_t most_rows(const Inputs& inputs, const std::optional<std::size_t>& top) {
    constexpr std::size_t kRowsOfATable = 20;
    return top.value_or(inputs.format == Format::table ? kRowsOfATable : 0);
}

Output trace_output(Options& options) {
    const std::string& path = options.required_text("-o,--output", "OUT.sqlite", "The trace to write");
    return {path, options.flag("--overwrite", "Replace OUT.sqlite if it exists")};
}

Work summary_verb(Options& options) {
    const bool& folds =
        options.flag("--fold-communication", "Communication counts as Kernel and has no row of its own");
    return [&folds](const Inputs& inputs) {
        const auto communication = folds ? CommunicationAs::kernel : CommunicationAs::category;
        return analyse(inputs,
                       [=](const Trace& t, const Selection& s) { return summarize(t, s, communication); });
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
    const std::string& space = options.text("--space", "device|pinned|host",
                                            "Only the memory of this space (device; with --allocations all)");
    const auto& top = top_option(options);
    options.excludes("--explain", "--allocations");
    options.excludes("--explain", "--space");
    options.needs("--top", "--allocations");
    return [&](const Inputs& inputs) {
        const std::optional<MemorySpace> wanted = parse_space(space);
        if (explain)
            return analyse(inputs, [](const Trace& t, const Selection& s) { return explain_memory(t, s); });
        if (allocations) {
            return analyse(inputs, [&, most = most_rows(inputs, top)](const Trace& t, const Selection& s) {
                return allocations_report(t, s, wanted, most);
            });
        }
        return analyse(inputs, [&](const Trace& t, const Selection& s) {
            return memory_report(t, s, wanted ? *wanted : space_in_use(t));
        });
    };
}

}  // namespace shardscope::traces
