#include "traces/merge/payload_ids.h"

#include <set>
#include <vector>

#include <fmt/core.h>

#include "traces/merge/part.h"

namespace shardscope::traces {

namespace {

struct Layout {
    std::string text;                  // everything that distinguishes it from another layout
    std::set<std::int64_t> refers_to;  // schemas of its entries
};

constexpr std::int64_t kFirstSchema = 1 << 24;  // lower numbers are NVTX's own types

// Appends the rows of one table to their layouts.
void read(Part& part, const RowIds& ids, const char* table, const char* columns, bool has_type,
          std::map<std::pair<std::int64_t, std::int64_t>, Layout>& layouts) {
    if (!part.has_table(table)) return;
    Statement row(part.database,
                  fmt::format("SELECT domainId, schemaId, {} FROM {} ORDER BY rowid", columns, table));
    while (row.step()) {
        Layout& layout = layouts[{ids.domain(row.integer(0), 0), row.integer(1)}];
        layout.text += table;
        for (int c = 2; c < row.column_count(); ++c)
            fmt::format_to(std::back_inserter(layout.text), "|{}", row.text(c));
        layout.text += '\n';
        if (has_type && row.integer(2) >= kFirstSchema) layout.refers_to.insert(row.integer(2));
    }
}

}  // namespace

void PayloadIds::assign(Part& part, RowIds& ids) {
    std::map<Key, Layout> layouts;
    read(part, ids, "NVTX_PAYLOAD_SCHEMAS", "name, type, flags, numEntries, payloadSize, alignTo", false,
         layouts);
    read(part, ids, "NVTX_PAYLOAD_SCHEMA_ENTRIES",
         "type, idx, flags, name, description, arrayOrUnionDetail, offset", true, layouts);
    read(part, ids, "NVTX_PAYLOAD_ENUMS", "name, numEntries, size", false, layouts);
    read(part, ids, "NVTX_PAYLOAD_ENUM_ENTRIES", "idx, name, value, isFlag", false, layouts);

    for (const auto& [key, layout] : layouts) {
        const auto it = layouts_.find(key);
        if (it != layouts_.end() && it->second != layout.text) ids.schemas[key] = next_++;
    }
    for (bool more = true; more;) {  // a schema that refers to one with a new id needs a new id, too
        more = false;
        for (const auto& [key, layout] : layouts) {
            for (const std::int64_t other : layout.refers_to) {
                if (!ids.schemas.contains({key.first, other}) || ids.schemas.contains(key)) continue;
                ids.schemas[key] = next_++;
                more = true;
            }
        }
    }
    for (const auto& [key, layout] : layouts)
        layouts_.emplace(Key{key.first, ids.schema(key.first, key.second)}, layout.text);
}

}  // namespace shardscope::traces
