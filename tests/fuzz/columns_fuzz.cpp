// Fuzzes the file of columns beside a trace: whatever it contains, the trace opens, from it or from the rows,
// and every lane can be walked. The input is a list of changes (three bytes of offset, one of length, the
// bytes) to a valid file; or, if its first byte is odd, a list of values (a column, a row, eight bytes) in a
// file whose sums are right.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include <unistd.h>

#include "tests/traces/sample_run.h"
#include "traces/lanes/kept_tracks.h"
#include "traces/lanes/tracks.h"
#include "traces/store/beside/each_column.h"
#include "traces/store/beside/kept_trace.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace {

using namespace shardscope::traces;

struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "fuzz-columns-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        trace = name + "/run.sqlite";
        columns = store::column_path(trace);
        store::DatabaseWriter writer({.path = trace, .on_this_machine = false});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
        std::filesystem::last_write_time(
            trace, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
        const auto loaded = store::load_trace(trace);
        (void)lanes::keep_beside(*loaded, lanes::make_tracks(*loaded).tracks);
        std::ifstream file(columns, std::ios::binary);
        whole.assign(std::istreambuf_iterator<char>(file), {});
    }
    ~Folder() { std::filesystem::remove_all(std::filesystem::path(trace).parent_path()); }
    std::string trace, columns, whole;
};

void write_changed(const Folder& folder, std::string_view changes) {
    std::string bytes = folder.whole;
    while (changes.size() > 4) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(changes[i]); };
        const std::size_t at = (byte(0) << 16 | byte(1) << 8 | byte(2)) % bytes.size();
        const std::size_t length = std::min<std::size_t>({byte(3), changes.size() - 4, bytes.size() - at});
        bytes.replace(at, length, changes.substr(4, length));
        changes.remove_prefix(4 + length);
    }
    std::ofstream(folder.columns, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void write_forged(const Folder& folder, std::string_view values) {
    constexpr std::size_t kColumns = 96;
    std::filesystem::remove(folder.columns);
    const auto trace = store::load_trace(folder.trace);
    const lanes::Tracks tracks = lanes::make_tracks(*trace);
    for (; values.size() >= 10; values.remove_prefix(10)) {
        std::size_t column = static_cast<unsigned char>(values[0]) % kColumns;
        const auto row = static_cast<unsigned char>(values[1]);
        store::visit_columns(*trace, {}, [&]<typename Kind>(const char*, Kind& into, store::ColumnBound) {
            if (column-- != 0) return;
            if constexpr (std::is_same_v<Kind, store::IndexColumn>) {
                std::int32_t value = 0;
                std::memcpy(&value, values.data() + 2, sizeof value);
                if (!into.empty()) into.set(row % trace->device.size(), value);
            } else if (!into.empty()) {
                std::memcpy(into.data() + row % into.size(), values.data() + 2, sizeof into[0]);
            }
        });
    }
    (void)lanes::keep_beside(*trace, tracks.tracks);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Folder folder;
    std::string_view input(reinterpret_cast<const char*>(data), size);
    if (input.empty()) return 0;
    const bool forged = (input[0] & 1) != 0;
    input.remove_prefix(1);
    if (forged) {
        write_forged(folder, input);
    } else {
        write_changed(folder, input);
    }
    const auto trace = store::load_trace(folder.trace);
    std::int64_t sum = 0;
    for (const lanes::Track& track : lanes::make_tracks(*trace).tracks) {
        for (const lanes::Lane& lane : track.lanes) {
            for (std::size_t i = 0; i < lane.size(); ++i)
                sum ^= lane.start(i) ^ lane.end(i) ^ lane.paint(i) ^ lane.event(i).index;
            sum ^= lane.dominant(0, lane.size());
            for (std::size_t i = 0; i < lane.size(); ++i)
                sum ^= static_cast<std::int64_t>(lane.first_starting_from(i / 2, lane.start(i)));
            lane.prefetch(lane.paints(), 0, lane.size(), 8,
                          [&](int t) { return lane.start(lane.size() * static_cast<std::size_t>(t) / 8); });
        }
    }
    for (const schema::StringId name : trace->device.name)
        sum ^= static_cast<int>(trace->strings[name].size());
    return sum == 1 ? -1 : 0;
}
