#include "traces/cli/verbs.h"

#include <cstdio>
#include <memory>
#include <string_view>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/allocations_report.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"
#include "traces/cli/analyse.h"
#include "traces/cli/fail_if.h"
#include "traces/query/as_database.h"
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

// The lines, each printable.
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
    // Fields of CSV are as they are in the trace: a file can hold any, a terminal would obey some.
    const std::string shown = ::isatty(STDOUT_FILENO) != 0 ? for_terminal(text) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print_notes(const std::vector<std::string>& sentences) {
    for (const std::string& note : sentences)
        fmt::print(stderr, "shardscope-trace: note: {}\n", printable(note));
}

AsDatabaseOptions database_options(const Inputs& inputs) {
    return {.files = inputs.files,
            .partial = inputs.partial,
            .max_bytes = parse_size(inputs.max_size),
            .ours = false};
}

int run_info(const Inputs& inputs) {
    print(render(trace_info(*load(inputs)), inputs.format));
    return kDone;
}

int run_summary(const Inputs& inputs, bool fold_communication) {
    const auto communication = fold_communication ? CommunicationAs::kernel : CommunicationAs::category;
    return analyse(inputs,
                   [=](const Trace& t, const Selection& s) { return summarize(t, s, communication); });
}

int run_modules(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return module_view(t, s); });
}

int run_memory(const Inputs& inputs, const MemoryArguments& arguments) {
    const std::optional<MemorySpace> space = parse_space(arguments.space);
    if (arguments.explain)
        return analyse(inputs, [](const Trace& t, const Selection& s) { return explain_memory(t, s); });
    if (arguments.allocations) {
        const std::size_t most = most_rows(inputs, arguments.top);
        return analyse(inputs, [=](const Trace& t, const Selection& s) {
            return allocations_report(t, s, space, most);
        });
    }
    return analyse(inputs, [=](const Trace& t, const Selection& s) {
        return memory_report(t, s, space ? *space : space_in_use(t));
    });
}

int run_collectives(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return collectives_report(t, s); });
}

int run_compare(const Inputs& inputs, const std::string& by, const std::vector<std::string>& fail_if) {
    const Selection selection = parse_selection(inputs.selection);
    const std::optional<CompareBy> parts = compare_by(by);
    if (!by.empty() && !parts) {
        throw UsageError(
            fmt::format("--by {} is unknown; use module, kernel, collective, unit or operator", by));
    }
    std::vector<FailIf> conditions;
    conditions.reserve(fail_if.size());
    for (const std::string& text : fail_if) conditions.push_back(parse_fail_if(text));
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<const Trace*> pointers;
    for (const std::string& file : inputs.files) {
        Inputs one = inputs;
        one.files = {file};
        traces.push_back(load(one));
        check_selection(selection, *traces.back());
        pointers.push_back(traces.back().get());
    }
    const auto told = [&](const auto& comparison) {
        print(render(comparison, inputs.format, table_width()));
        return failures(conditions, render(comparison, Format::json));
    };
    const auto failed =
        parts ? told(compare_parts(pointers, *parts, selection)) : told(compare(pointers, selection));
    for (const std::string& sentence : failed) fmt::print(stderr, "shardscope-trace: {}\n", sentence);
    return failed.empty() ? kDone : kFailed;
}

}  // namespace shardscope::traces
