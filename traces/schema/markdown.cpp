// docs/schema.md from the schema's data.

#include <fmt/core.h>

#include "traces/schema/metric_kinds.h"
#include "traces/schema/rows.h"
#include "traces/schema/schema.h"
#include "traces/schema/text.h"

namespace shardscope::traces::schema {

namespace {

void append_columns(std::string& text, std::span<const SchemaColumn> columns, bool with_type) {
    text += with_type ? "| column | type | unit | meaning |\n| --- | --- | --- | --- |\n"
                      : "| column | unit | meaning |\n| --- | --- | --- |\n";
    for (const SchemaColumn& c : columns) {
        if (with_type) {
            fmt::format_to(std::back_inserter(text), "| `{}` | {} | {} | {} |\n", c.name, c.type, c.unit,
                           c.meaning);
        } else {
            fmt::format_to(std::back_inserter(text), "| `{}` | {} | {} |\n", c.name, c.unit, c.meaning);
        }
    }
    text += '\n';
}

void append_metrics(std::string& text) {
    text += "Metrics of shardscope-train:\n\n| metric | over ranks | meaning |\n| --- | --- | --- |\n";
    for (const MetricKind& kind : metric_kinds()) {
        const std::string_view words = words_of(kind.over_ranks);
        fmt::format_to(std::back_inserter(text), "| `{}` | {} | {} |\n", kind.name,
                       words.empty() ? "the same on each" : words, kind.meaning);
    }
    text += '\n';
}

void append_tables(std::string& text, std::span<const SchemaTable> tables) {
    for (const SchemaTable& table : tables) {
        fmt::format_to(std::back_inserter(text), "### {}\n\n{}\n\n", table.name, table.meaning);
        append_columns(text, table.columns, true);
        if (table.name == MetricRow::kTable) append_metrics(text);
    }
}

void append_enums(std::string& text, std::span<const SchemaTable> enums) {
    for (const SchemaTable& table : enums) {
        fmt::format_to(std::back_inserter(text),
                       "### {}\n\n{}\n\n| id | name | label |\n| --- | --- | --- |\n", table.name,
                       table.meaning);
        for (const EnumRow& row : table.rows) {
            fmt::format_to(std::back_inserter(text), "| {} | {} | {} |\n", row.id, row.name, row.label);
        }
        text += '\n';
    }
}

}  // namespace

std::string schema_markdown_of(std::string_view name) {
    const std::string page = schema_markdown();
    constexpr std::string_view kHeading = "\n### ";
    for (auto at = page.find(kHeading); at != std::string::npos; at = page.find(kHeading, at + 1)) {
        const std::string_view section = std::string_view(page).substr(at + 1);
        const std::string_view title = section.substr(4, section.find('\n') - 4);
        if (same_but_for_case(title, name)) return std::string(section.substr(0, section.find("\n\n#") + 1));
    }
    return {};
}

std::string schema_markdown() {
    std::string text = fmt::format(R"(# The trace database

<!-- Made from traces/schema by the test SchemaPage; run it with SHARDSCOPE_UPDATE_DOCS=1 to renew this page. -->

A trace is one SQLite file: one run, all its ranks. This is schema version {} (`PRAGMA user_version`); a newer
file is refused, an older one is read. Times are whole nanoseconds since the start of the capture, sizes are bytes,
names are ids into `StringIds`. "Serialized" ids hold machine, process and thread in one number, as Nsight Systems
builds them: `globalTid >> 24 & 0xFFFFFF` is the process, `globalTid & 0xFFFFFF` the thread.

- [Views](#views): start here. Names resolved, the rank on every row, times in `*_ns` columns.
- [Tables of Nsight Systems](#tables-of-nsight-systems): its export's schema {}; SQL written for an export runs here.
- [Tables of our own](#tables-of-our-own): what an export has no table for.
- [Enum tables](#enum-tables): what the numbers mean.
- [Indexes](#indexes).

## Views

)",
                                   kSchemaVersion, kNsightSchemaVersion);
    for (const SchemaView& view : views()) {
        fmt::format_to(std::back_inserter(text), "### {}\n\n{}\n\n", view.name, view.meaning);
        append_columns(text, view.columns, false);
    }
    text +=
        "## Tables of Nsight Systems\n\nWhat is not known is NULL, or 0 where the column must not be "
        "NULL.\n\n";
    append_tables(text, nsight_tables());
    text += "## Tables of our own\n\nAn id of \"none\" is NULL.\n\n";
    append_tables(text, shard_tables());
    text +=
        "## Enum tables\n\nColumns: `id`, the value that other tables hold; `name`, its symbol; `label`, its "
        "name for "
        "people.\n\n";
    append_enums(text, nsight_enums());
    append_enums(text, shard_enums());
    text +=
        "## Indexes\n\nMade when the run ends; none exist while it is recorded.\n\n| table | column |\n| --- "
        "| --- |\n";
    for (const SchemaIndex& index : indexes()) {
        fmt::format_to(std::back_inserter(text), "| {} | {} |\n", index.table, index.column);
    }
    return text;
}

}  // namespace shardscope::traces::schema
