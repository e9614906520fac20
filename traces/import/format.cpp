#include "traces/import/format.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "traces/import/json/json_scan.h"

namespace shardscope::traces {

namespace {

constexpr std::size_t kHead = std::size_t{64} << 10;
constexpr std::string_view kSqlite("SQLite format 3\0", 16);

// The keys of the JSON object that begins with `head`, as far as it goes.
template <typename See>
void each_key(std::string_view head, See see) {
    JsonRepairs ignored;
    JsonScanner scanner(head, false, ignored);
    std::string key;
    try {
        scanner.expect('{', "an object");
        while (scanner.next() == '"') {
            scanner.read_string(key, true);
            if (!see(key)) return;
            scanner.expect(':', "a colon");
            scanner.skip_value();
            if (!scanner.take(',')) return;
        }
    } catch (const JsonScanner::Incomplete&) {
    } catch (const JsonScanner::Broken&) {
    }
}

// A flight recorder's dump has its own keys; every other object is taken for a trace.
FileFormat json_format(std::string_view head) {
    constexpr std::array<std::string_view, 5> kFlight = {"entries", "pg_status", "pg_config",
                                                         "nccl_comm_state", "comm_lib_version"};
    FileFormat format = FileFormat::json_trace;
    each_key(head, [&](std::string_view key) {
        if (std::find(kFlight.begin(), kFlight.end(), key) != kFlight.end()) format = FileFormat::json_flight;
        return format == FileFormat::json_trace && key != "traceEvents";
    });
    return format;
}

}  // namespace

FileFormat sniff_format(Input& input) {
    std::string_view head = input.peek(kHead);
    if (head.empty()) throw StoreError(fmt::format("{} is empty; record it again", input.path()));
    if (head.starts_with(kSqlite)) return FileFormat::sqlite;
    // Protocols 2 and later begin with their number, the older ones with what they build: a tuple's or list's
    // mark, an empty list or an empty dictionary.
    if (std::string_view("\x80(]}").find(head.front()) != std::string_view::npos) return FileFormat::pickle;
    if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
    const auto first = head.find_first_not_of(" \t\r\n");
    if (first != head.npos && head[first] == '[') return FileFormat::json_trace;
    if (first != head.npos && head[first] == '{') return json_format(head.substr(first));
    // Editors and shells of Windows write JSON so.
    if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) {
        throw StoreError(fmt::format(
            "{} is text in UTF-16, and traces are in UTF-8; convert it with iconv -f UTF-16 -t UTF-8",
            input.path()));
    }
    throw StoreError(fmt::format(
        "{} is no trace that is known: neither SQLite (ours, Nsight Systems), JSON (Kineto, Chrome, "
        "flight recorder) nor a pickle (memory snapshot, flight recorder), plain or packed with gzip",
        input.path()));
}

}  // namespace shardscope::traces
