#include "traces/import/read_file.h"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace shardscope::traces {

namespace fs = std::filesystem;

namespace {

constexpr int kRankAtMost = 1 << 20;
constexpr std::size_t kReadChunk = std::size_t{4} << 20;

// The number that begins at `at`; -1 none.
int number_at(const std::string& text, std::size_t at) {
    int number = -1;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at) {
        number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
        if (number > kRankAtMost) return -1;
    }
    return number;
}

struct Descriptor {
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
    int number = -1;
};

// How long the packed database says that it is, from its first page, looked at before anything is unpacked.
// Source: SQLite's documentation "Database File Format", 1.3 and 1.6.
std::uint64_t bytes_of_database(Input& input) {
    const std::string_view head = input.peek(101);
    const auto number = [&](std::size_t at, std::size_t size) {
        std::uint64_t value = 0;
        for (std::size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<unsigned char>(head[i]);
        return value;
    };
    constexpr std::uint64_t kFractions = 0x402020;     // fixed bytes
    constexpr std::uint64_t kLeaf = 0x0D, kInner = 5;  // of the table of tables, which begins the first page
    const bool whole = head.size() > 100 && number(21, 3) == kFractions &&
                       (number(100, 1) == kLeaf || number(100, 1) == kInner);
    const std::uint64_t page = !whole ? 0 : number(16, 2) == 1 ? 65536 : number(16, 2);
    if (page < 512 || (page & (page - 1)) != 0)
        throw input.error(0, "what is packed begins like an SQLite file and is none; it is damaged");
    const bool told = number(24, 4) == number(92, 4) && number(28, 4) > 0;
    return told ? page * number(28, 4) : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

FileFacts read_file(Input& input, FileFormat format, EventSink& sink, const FileRequest& request) {
    switch (format) {
        case FileFormat::json_trace:
            return read_chrome_trace(input, sink, request);
        case FileFormat::json_flight:
            return read_flight_json(input, sink, request);
        case FileFormat::pickle:
            return read_pickle(input, sink, request);
        case FileFormat::sqlite:
            break;
    }
    throw StoreError(fmt::format("{} is a database; it is opened, not imported", input.path()));
}

int rank_of_name(const std::string& path) {
    std::string name = fs::path(path).filename().string();
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const std::string word : {"rank", "worker"}) {
        for (auto at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
            std::size_t digits = at + word.size();
            if (digits < name.size() && std::strchr("-_=", name[digits]) != nullptr) ++digits;
            if (const int number = number_at(name, digits); number >= 0) return number;
        }
    }
    return -1;
}

int number_of_name(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const std::string stem = name.substr(0, name.find('.'));
    const auto last = stem.find_last_not_of("0123456789");
    return number_at(stem, last == std::string::npos ? 0 : last + 1);
}

UnpackedDatabase::UnpackedDatabase(Input& input) {
    const std::uint64_t most = bytes_of_database(input);
    const auto fail = [&](int reason) {
        return StoreError(fmt::format(
            "{} cannot be unpacked to {} ({}); set TMPDIR to a folder with room for it, or unpack it "
            "with gunzip",
            input.path(), ScratchFolder::parent(), std::strerror(reason)));
    };
    try {
        folder_.emplace("unpacked");
    } catch (const std::system_error& error) {
        throw fail(error.code().value());
    }
    path_ = folder_->path() + "/trace.sqlite";
    const Descriptor file{::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR)};
    if (file.number < 0) throw fail(errno);
    std::vector<char> chunk(kReadChunk);
    std::uint64_t written = 0;
    for (;;) {
        const std::size_t got = input.read(chunk);
        written += got;
        if (written > most)
            throw input.error(most,
                              "the database goes on beyond the end that its first bytes tell; it is damaged");
        for (std::size_t done = 0; done < got;) {
            const ssize_t n = ::write(file.number, chunk.data() + done, got - done);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) throw fail(n < 0 ? errno : ENOSPC);
            done += static_cast<std::size_t>(n);
        }
        if (got < chunk.size()) break;
    }
}

}  // namespace shardscope::traces
