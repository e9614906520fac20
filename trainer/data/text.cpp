// Reads text and cuts windows out of it; see text.h.
#include "trainer/data/text.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "trainer/kernels/random.h"

namespace shardscope::trainer {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_read(const fs::path& path, int error) {
    throw DataError(fmt::format("data.path: cannot read {}: {}; check its permissions or name another text",
                                path.string(), std::strerror(error)));
}

void append_file(const fs::path& path, std::string& text) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!file) fail_to_read(path, errno);
    std::vector<char> block(std::size_t{1} << 16);
    for (;;) {
        errno = 0;
        const std::size_t got = std::fread(block.data(), 1, block.size(), file.get());
        text.append(block.data(), got);
        if (got == block.size()) continue;
        if (std::ferror(file.get())) fail_to_read(path, errno);
        return;
    }
}

// The regular files directly in a folder, by name.
std::vector<fs::path> text_files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const fs::file_status status = entry->symlink_status(error);
        if (error) break;
        const bool hidden = entry->path().filename().native().front() == '.';
        if (fs::is_regular_file(status) && !hidden) files.push_back(entry->path());
    }
    if (error) fail_to_read(folder, error.value());
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<fs::path> text_files_at(const fs::path& path) {
    if (path.empty()) {
        throw DataError("data.path: is not set; give a text file, or a folder of text files");
    }
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        if (error && error != std::errc::no_such_file_or_directory) fail_to_read(path, error.value());
        throw DataError(fmt::format(
            "data.path: {} does not exist; give a text file, or a folder of text files", path.string()));
    }
    if (fs::is_directory(status)) {
        std::vector<fs::path> files = text_files_in(path);
        if (files.empty()) {
            throw DataError(
                fmt::format("data.path: the folder {} has no text file directly in it; give a text file, "
                            "or a folder of text files",
                            path.string()));
        }
        return files;
    }
    if (!fs::is_regular_file(status)) {
        throw DataError(
            fmt::format("data.path: {} is neither a file nor a folder; give a text file, or a folder of "
                        "text files",
                        path.string()));
    }
    return {path};
}

}  // namespace

TextDataset::TextDataset(const std::string& path, std::int64_t seed, int context)
    : seed_(static_cast<std::uint64_t>(seed)), context_(context) {
    try {
        const std::vector<fs::path> files = text_files_at(path);
        for (const fs::path& file : files) append_file(file, text_);
        files_ = static_cast<int>(files.size());
    } catch (const std::bad_alloc&) {
        throw DataError(fmt::format("data.path: {} does not fit into memory; name a smaller text", path));
    }
    if (text_.empty()) {
        throw DataError(
            fmt::format("data.path: {} is empty; name a text of at least model.context + 1 = {} bytes", path,
                        std::int64_t{context} + 1));
    }
    if (text_.size() < static_cast<std::size_t>(context) + 1) {
        throw DataError(
            fmt::format("data.path: {} has {} bytes, and a sample needs model.context + 1 = {}; name a "
                        "longer text or make model.context smaller",
                        path, text_.size(), std::int64_t{context} + 1));
    }
}

std::int64_t TextDataset::input_bytes() const {
    return static_cast<std::int64_t>(sizeof(std::int32_t)) * context_;
}

std::int64_t TextDataset::target_bytes() const {
    return input_bytes();
}

std::int64_t TextDataset::position_of(std::int64_t sample) const {
    const std::uint64_t positions = text_.size() - static_cast<std::size_t>(context_);
    const std::uint64_t bits = kernels::random_bits(seed_, kernels::stream_of("data.text.position"),
                                                    static_cast<std::uint64_t>(sample));
    return static_cast<std::int64_t>(bits % positions);
}

void TextDataset::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    fill(first_sample, count, static_cast<std::int32_t*>(input), static_cast<std::int32_t*>(target));
}

void TextDataset::fill(std::int64_t first_sample, int count, std::int32_t* tokens,
                       std::int32_t* targets) const {
    for (int i = 0; i < count; ++i) {
        const char* window = text_.data() + position_of(first_sample + i);
        const std::size_t row = static_cast<std::size_t>(i) * static_cast<std::size_t>(context_);
        for (int t = 0; t < context_; ++t) {
            tokens[row + t] = static_cast<unsigned char>(window[t]);
            targets[row + t] = static_cast<unsigned char>(window[t + 1]);
        }
    }
}

}  // namespace shardscope::trainer
