// Reads a large table on several threads, each a part of its rows into a sink of its own.
#include <cstddef>
#include <deque>
#include <future>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "traces/store/load/load_source.h"

namespace shardscope::traces::store {

void load_in_parts(LoadSource& source, std::string_view table, const std::function<void(LoadSource&)>& load) {
    const std::vector<RowIds> parts = source.parts_of(table);
    if (parts.size() < 2) return load(source);
    struct Other {
        explicit Other(Database opened) : database(std::move(opened)) {}
        Database database;
        ColumnSink sink;
        std::future<void> done;  // its destructor waits
    };
    // All that the threads share is copied before the first one runs: this one goes on adding strings.
    const std::size_t strings = source.sink.strings();
    std::deque<Other> others;
    for (std::size_t p = 1; p < parts.size(); ++p)
        others.emplace_back(source.open_again()).sink.begin_with_strings_of(source.sink);
    try {
        for (std::size_t p = 1; p < parts.size(); ++p) {
            Other& other = others[p - 1];
            other.done = std::async(std::launch::async, [&source, &other, &load, table, ids = parts[p]] {
                LoadSource part(other.database, other.sink, source, table, ids);
                load(part);
            });
        }
    } catch (const std::system_error&) {  // there are too many threads already
        throw NotInParts();
    }
    source.set_part(table, parts[0], parts.size());
    load(source);
    source.set_part(table, std::nullopt);
    for (Other& other : others) other.done.get();
    for (Other& other : others) {
        if (!source.sink.append(other.sink, strings)) throw NotInParts();
    }
}

}  // namespace shardscope::traces::store
