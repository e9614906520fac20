#include "traces/import/importer_table.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "traces/import/json/json_scan.h"
#include "traces/import/topology/topology_file.h"
#include "traces/store/file_descriptor.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kHead = std::size_t{64} << 10;
constexpr std::size_t kReadChunk = std::size_t{4} << 20;
constexpr std::string_view kSqlite("SQLite format 3\0", 16);

// --- detection of each format ---------------------------------------------------------------------------

// The text after a byte order mark and white space.
std::string_view json_of(std::string_view head) {
    if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
    const auto first = head.find_first_not_of(" \t\r\n");
    return first == head.npos ? std::string_view() : head.substr(first);
}

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

// A flight recorder's dump is known by its keys.
bool is_flight_json(const FileHead& head) {
    constexpr std::array<std::string_view, 5> kFlight = {"entries", "pg_status", "pg_config",
                                                         "nccl_comm_state", "comm_lib_version"};
    const std::string_view json = json_of(head.bytes);
    bool found = false;
    if (!json.starts_with('{')) return false;
    each_key(json, [&](std::string_view key) {
        found = std::find(kFlight.begin(), kFlight.end(), key) != kFlight.end();
        return !found && key != "traceEvents";
    });
    return found;
}

// Any other object or array is assumed to be a trace.
bool is_json(const FileHead& head) {
    const std::string_view json = json_of(head.bytes);
    return json.starts_with('{') || json.starts_with('[');
}

// Protocol 2 and later begin with the PROTO opcode; older ones begin with the opcode of their value: the mark
// of a tuple or list, an empty list or an empty dictionary.
bool is_pickle(const FileHead& head) {
    return !head.bytes.empty() &&
           std::string_view("\x80(]}").find(head.bytes.front()) != std::string_view::npos;
}

bool is_perf(const FileHead& head) {
    return is_perf_script(head.bytes);
}

bool is_rocpd(const FileHead& head) {
    return head.has_table_like("rocpd_info_");
}

bool is_any_database(const FileHead& head) {
    return head.is_database();
}

bool is_topology(const FileHead& head) {
    return is_topology_file(head.bytes);
}

constexpr Importer kImporters[] = {
    {"rocpd database", "rocpd databases of ROCm's rocprofv3", is_rocpd, nullptr, read_rocpd},
    {"database", "databases of Shardscope, SQLite exports of Nsight Systems", is_any_database, nullptr,
     nullptr},
    // Before the next ones: a paste may begin with a prompt, "(venv) $" or "[me@node ~]$".
    {"topology", "tables of nvidia-smi topo, topologies and graphs of NCCL (XML)", is_topology,
     read_topology_trace, nullptr},
    {"pickle", "memory snapshots and flight recorder dumps of PyTorch", is_pickle, read_pickle, nullptr},
    {"perf script", "the text of perf script", is_perf, read_perf_script, nullptr},
    {"flight recorder dump", "", is_flight_json, read_flight_json, nullptr},
    {"Chrome trace", "Kineto and Chrome traces (JSON)", is_json, read_chrome_trace, nullptr},
};

const Importer& importer_of(const FileHead& head, const std::string& path) {
    if (head.bytes.empty()) throw store::StoreError(fmt::format("{} is empty; record it again", path));
    for (const Importer& importer : kImporters) {
        if (importer.knows(head)) return importer;
    }
    // UTF-16: editors and shells on Windows write JSON in it.
    if (head.bytes.starts_with("\xFF\xFE") || head.bytes.starts_with("\xFE\xFF")) {
        throw store::StoreError(fmt::format(
            "{} is text in UTF-16, and traces are in UTF-8; convert it with iconv -f UTF-16 -t UTF-8", path));
    }
    throw store::StoreError(
        fmt::format("{} is not a trace of a known format; give one of {}, plain or compressed with gzip",
                    path, readable_formats()));
}

// --- packed databases -----------------------------------------------------------------------------------

// The size of the packed database according to its first page, which is read before anything is unpacked.
// Source: SQLite's documentation "Database File Format", 1.3 and 1.6.
std::uint64_t bytes_of_database(Input& input) {
    const std::string_view head = input.peek(101);
    const auto number = [&](std::size_t at, std::size_t size) {
        std::uint64_t value = 0;
        for (std::size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<unsigned char>(head[i]);
        return value;
    };
    constexpr std::uint64_t kFractions = 0x402020;     // fixed by the format
    constexpr std::uint64_t kLeaf = 0x0D, kInner = 5;  // pages of sqlite_schema, which is on the first page
    const bool whole = head.size() > 100 && number(21, 3) == kFractions &&
                       (number(100, 1) == kLeaf || number(100, 1) == kInner);
    const std::uint64_t page = !whole ? 0 : number(16, 2) == 1 ? 65536 : number(16, 2);
    if (page < 512 || (page & (page - 1)) != 0)
        throw input.error(
            0, "the decompressed content begins like an SQLite file but is not one; it is damaged");
    const bool told = number(24, 4) == number(92, 4) && number(28, 4) > 0;
    return told ? page * number(28, 4) : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::string readable_formats() {
    std::vector<std::string_view> formats;
    for (const Importer& importer : kImporters) {
        if (*importer.reads != '\0') formats.emplace_back(importer.reads);
    }
    std::string list;
    for (std::size_t i = 0; i < formats.size(); ++i)
        list += fmt::format("{}{}", i == 0 ? "" : i + 1 == formats.size() ? " and " : ", ", formats[i]);
    return list;
}

bool FileHead::has_table_like(std::string_view begin) const {
    if (!is_database()) return false;
    try {
        store::Database database(database_, store::Database::Mode::read_only);
        store::Statement names(database, "SELECT name FROM sqlite_master");
        while (names.step()) {
            if (names.text(0).starts_with(begin)) return true;
        }
    } catch (const store::StoreError&) {
        // The loader reports what is wrong with it.
    }
    return false;
}

KnownFile::KnownFile(Input input) : input_(std::move(input)) {
    const std::string_view bytes = input_.peek(kHead);
    if (bytes.starts_with(kSqlite)) {
        if (input_.packed()) {
            unpack();
        } else {
            database_ = input_.path();
        }
    }
    importer_ = &importer_of(FileHead(bytes, database_), input_.path());
}

FileFacts KnownFile::read(store::EventSink& sink, const FileRequest& request) {
    return importer_->read_database ? importer_->read_database(database_, input_.path(), sink, request)
                                    : importer_->read(input_, sink, request);
}

void KnownFile::unpack() {
    const std::uint64_t most = bytes_of_database(input_);
    const auto fail = [&](int reason) {
        return store::StoreError(fmt::format(
            "{} cannot be unpacked to {} ({}); set TMPDIR to a folder with room for it, or unpack it "
            "with gunzip",
            input_.path(), store::ScratchFolder::parent(), std::strerror(reason)));
    };
    try {
        folder_.emplace("unpacked");
    } catch (const std::system_error& error) {
        throw fail(error.code().value());
    }
    database_ = folder_->path() + "/trace.sqlite";
    const store::FileDescriptor file(
        ::open(database_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file) throw fail(errno);
    std::vector<char> chunk(kReadChunk);
    std::uint64_t written = 0;
    for (;;) {
        const std::size_t got = input_.read(chunk);
        written += got;
        if (written > most)
            throw input_.error(most, "the database continues beyond the size in its header; it is damaged");
        for (std::size_t done = 0; done < got;) {
            const ssize_t n = ::write(file.get(), chunk.data() + done, got - done);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) throw fail(n < 0 ? errno : ENOSPC);
            done += static_cast<std::size_t>(n);
        }
        if (got < chunk.size()) break;
    }
}

bool is_trace(const std::string& path) {
    try {
        Input input = Input::open(path);
        const std::string_view bytes = input.peek(kHead);
        // Whether a packed database is a trace is checked when it is opened.
        importer_of(FileHead(bytes, bytes.starts_with(kSqlite) ? path : ""), path);
        return true;
    } catch (const store::StoreError&) {
        return false;
    }
}

}  // namespace shardscope::traces::importer
