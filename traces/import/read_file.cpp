#include "traces/import/read_file.h"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

namespace shardscope::traces {

namespace fs = std::filesystem;

namespace {

constexpr int kRankAtMost = 1 << 20;
constexpr std::size_t kChunk = std::size_t{4} << 20;

// The number that begins at `at`; -1 none.
int number_at(const std::string& text, std::size_t at) {
    int number = -1;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at) {
        number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
        if (number > kRankAtMost) return -1;
    }
    return number;
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
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    folder_ = (parent / "shardscope-unpacked-XXXXXX").string();
    const auto fail = [&](int reason) {
        if (!path_.empty()) fs::remove_all(folder_, error);
        return StoreError(fmt::format(
            "{} cannot be unpacked to {} ({}); set TMPDIR to a folder with room for it, or unpack it "
            "with gunzip",
            input.path(), parent.string(), std::strerror(reason)));
    };
    if (error || ::mkdtemp(folder_.data()) == nullptr) throw fail(errno);
    path_ = folder_ + "/trace.sqlite";
    const int file = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) throw fail(errno);
    std::vector<char> chunk(kChunk);
    try {
        for (;;) {
            const std::size_t got = input.read(chunk);
            for (std::size_t done = 0; done < got;) {
                const ssize_t n = ::write(file, chunk.data() + done, got - done);
                if (n < 0 && errno == EINTR) continue;
                if (n <= 0) throw fail(n < 0 ? errno : ENOSPC);
                done += static_cast<std::size_t>(n);
            }
            if (got < chunk.size()) break;
        }
    } catch (...) {
        ::close(file);
        fs::remove_all(folder_, error);
        throw;
    }
    ::close(file);
}

UnpackedDatabase::~UnpackedDatabase() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

}  // namespace shardscope::traces
