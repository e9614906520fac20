#include "traces/export/text_output.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include "traces/store/error.h"
#include "traces/store/sqlite/temporary_file.h"

namespace shardscope::traces::exports {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The length of the UTF-8 sequence at the start of `text`, 0 if it is not valid.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    const bool too_long = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
    const bool no_character = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
    return too_long || no_character ? 0 : length;
}

}  // namespace

struct TextOutput::File {
    File(const std::string& path, bool pack) : temporary(path) {
        const int handle = ::open(temporary.path().c_str(), O_WRONLY | O_CLOEXEC);
        if (handle < 0) throw failure();
        // "T" writes plain bytes through the same calls; level 6 is gzip's own choice.
        packed = ::gzdopen(handle, pack ? "wb6" : "wbT");
        if (packed == nullptr) {
            ::close(handle);
            throw store::StoreError(fmt::format("{} cannot be written: out of memory", temporary.path()));
        }
        constexpr unsigned kBuffer = 1 << 18;
        ::gzbuffer(packed, kBuffer);
    }
    ~File() {
        if (packed != nullptr) ::gzclose(packed);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    store::StoreError failure() const {
        return store::StoreError(fmt::format("{} cannot be written ({}); free some space or write elsewhere",
                                             temporary.path(), std::strerror(errno)));
    }

    store::TemporaryFile temporary;
    gzFile packed = nullptr;
};

TextOutput::TextOutput(const std::string& path, bool overwrite, bool pack)
    : path_(path), overwrite_(overwrite) {
    check(path, overwrite);
    store::remove_left_ones(path, "new");
    file_ = std::make_unique<File>(store::unfinished_name(path, "new"), pack);
}

TextOutput::~TextOutput() = default;

void TextOutput::check(const std::string& path, bool overwrite) {
    if (path.empty()) throw store::StoreError("the output's path is empty; give the file to write");
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status))
        throw store::StoreError(fmt::format("{} is a folder; give the path of a file to write", path));
    if (fs::exists(status) && !overwrite) {
        throw store::StoreError(
            fmt::format("{} exists; choose another path or use --overwrite to replace it", path));
    }
    if (fs::exists(status) && !fs::is_regular_file(status))
        throw store::StoreError(
            fmt::format("{} is not a regular file, so it is not replaced; choose another path", path));
    const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
    if (!fs::is_directory(folder, error))
        throw store::StoreError(
            fmt::format("{}: there is no folder {}; make it first", path, folder.string()));
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw store::StoreError(
            fmt::format("{} cannot be created: its folder is not writable ({}); choose another path", path,
                        std::strerror(errno)));
    }
}

void TextOutput::flush() {
    // gzfwrite takes any size; it returns fewer items if writing failed.
    errno = 0;
    if (!buffer_.empty() && ::gzfwrite(buffer_.data(), buffer_.size(), 1, file_->packed) != 1)
        throw file_->failure();
    bytes_ += static_cast<std::int64_t>(buffer_.size());
    buffer_.clear();
}

void TextOutput::finish() {
    flush();
    errno = 0;
    if (::gzclose(std::exchange(file_->packed, nullptr)) != Z_OK) throw file_->failure();
    file_->temporary.rename_to(path_, overwrite_);
    file_.reset();
}

std::string cut_name(std::string_view name) {
    if (name.size() <= kLongestName) return std::string(name);
    std::size_t end = kLongestName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
    return fmt::format("{}... ({} bytes)", name.substr(0, end), name.size());
}

void append_json(std::string& to, std::string_view text) {
    to += '"';
    for (std::size_t at = 0; at < text.size();) {
        const auto c = static_cast<unsigned char>(text[at]);
        if (c == '"' || c == '\\') {
            to += '\\';
            to += text[at++];
        } else if (c == '\n') {
            to += "\\n";
            ++at;
        } else if (c < 0x20 || c == 0x7F) {
            fmt::format_to(std::back_inserter(to), "\\u{:04x}", c);
            ++at;
        } else if (c < 0x80) {
            to += text[at++];
        } else if (const std::size_t length = sequence_length(text.substr(at)); length > 0) {
            to += text.substr(at, length);
            at += length;
        } else {
            to += kReplacement;
            ++at;
        }
    }
    to += '"';
}

void append_us(std::string& to, std::int64_t ns) {
    const bool negative = ns < 0;
    const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    fmt::format_to(std::back_inserter(to), "{}{}.{:03}", negative ? "-" : "", size / 1000, size % 1000);
}

}  // namespace shardscope::traces::exports
