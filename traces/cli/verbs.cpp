#include "traces/cli/verbs.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "traces/analysis/collectives.h"
#include "traces/analysis/compare.h"
#include "traces/analysis/info.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/memory_explanation.h"
#include "traces/analysis/modules.h"
#include "traces/analysis/summary.h"
#include "traces/cli/analyse.h"
#include "traces/cli/fail_if.h"
#include "traces/store/loader.h"
#include "traces/store/query.h"

namespace shardscope::traces {

namespace {

std::string read_sql(const std::string& text) {
    if (!text.ends_with(".sql")) return text;
    std::ifstream file(text, std::ios::binary);
    std::ostringstream content;
    if (!file || !(content << file.rdbuf())) {
        throw UsageError(fmt::format("{} cannot be read as SQL; check the path", text));
    }
    return content.str();
}

}  // namespace

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

int run_info(const Inputs& inputs) {
    print(render(trace_info(*load(inputs)), inputs.format));
    return kDone;
}

int run_summary(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return summarize(t, s); });
}

int run_modules(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return module_view(t, s); });
}

int run_memory(const Inputs& inputs, bool explain) {
    if (explain)
        return analyse(inputs, [](const Trace& t, const Selection& s) { return explain_memory(t, s); });
    return analyse(inputs, [](const Trace& t, const Selection& s) { return memory_report(t, s); });
}

int run_collectives(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return collectives_report(t, s); });
}

int run_compare(const std::vector<std::string>& files, const std::vector<std::string>& fail_if,
                Format format) {
    std::vector<FailIf> conditions;
    conditions.reserve(fail_if.size());
    for (const std::string& text : fail_if) conditions.push_back(parse_fail_if(text));
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<const Trace*> pointers;
    for (const std::string& file : files) {
        traces.push_back(load({.files = {file}, .selection = {}, .max_size = {}}));
        pointers.push_back(traces.back().get());
    }
    const Comparison comparison = compare(pointers);
    print(render(comparison, format));
    const auto failed = failures(conditions, render(comparison, Format::json));
    for (const std::string& sentence : failed) fmt::print(stderr, "shardscope-trace: {}\n", sentence);
    return failed.empty() ? kDone : kFailed;
}

int run_sql(const std::string& file, const std::string& sql, Format format) {
    const std::string text = read_sql(sql);
    check_input(file);
    const auto results = run_query(file, text);
    if (results.empty()) throw UsageError("query: the SQL has no statement with a result; write a SELECT");
    if (results.size() > 1 && format != Format::table) {
        throw UsageError(
            fmt::format("query: {} statements give results, and JSON and CSV hold one; keep one of them or "
                        "use --format table",
                        results.size()));
    }
    bool first = true;
    for (const QueryResult& result : results) {
        std::vector<Column> columns;
        for (const std::string& name : result.columns) columns.push_back({name});
        if (!first) print("\n");
        first = false;
        print(render_rows(columns, result.rows, format));
    }
    return kDone;
}

}  // namespace shardscope::traces
