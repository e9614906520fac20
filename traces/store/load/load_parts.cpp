// Reads a large table on several threads, each a part of its rows into a sink of its own.
#include <deque>
#include <future>

#include "traces/store/columns/append_rows.h"
#include "traces/store/load/load_source.h"

namespace shardscope::traces::store {

void load_in_parts(LoadSource& source, std::string_view table, const std::function<void(LoadSource&)>& load) {
    const std::vector<RowIds> parts = source.parts_of(table);
    if (parts.size() < 2) return load(source);
    struct Other {
        ColumnSink sink;
        std::future<void> done;  // its destructor waits
    };
    std::deque<Other> others(parts.size() - 1);
    for (std::size_t p = 1; p < parts.size(); ++p) {
        ColumnSink& into = others[p - 1].sink;
        others[p - 1].done = std::async(std::launch::async, [&source, &into, &load, table, ids = parts[p]] {
            Database database = source.open_again();
            into.begin_with_strings_of(source.sink);
            LoadSource part(database, into, source, table, ids);
            load(part);
        });
    }
    source.set_part(table, parts[0], parts.size());
    load(source);
    source.set_part(table, std::nullopt);
    for (Other& other : others) other.done.get();
    for (Other& other : others) {
        if (!source.sink.append(other.sink)) throw NotInParts();
    }
}

}  // namespace shardscope::traces::store
