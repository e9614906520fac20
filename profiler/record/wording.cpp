// Sentences and numbers for people.
#include "profiler/record/wording.h"

#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/report/text_table.h"

namespace shardscope::profiler {

namespace fs = std::filesystem;

void tell(const std::string& sentence) {
    // Names of ranges may contain control sequences, which a terminal obeys.
    const std::string line = "shardscope-record: " + traces::report::printable(sentence) + '\n';
    // Written in one piece, so that lines of several ranks do not mix.
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // there is nowhere to report it
}

std::string seconds(std::int64_t ns) {
    return fmt::format("{:.{}f} s", static_cast<double>(ns) * 1e-9, ns < 10'000'000'000 ? 2 : 1);
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    auto number = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; number >= 1000 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
    return fmt::format("{:.{}f} {}", number, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string plural(std::int64_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string listed(const RowCounts& counts) {
    std::string list;
    const auto put = [&](std::int64_t count, const char* one, const char* many) {
        if (count != 0) list += (list.empty() ? "" : ", ") + plural(count, one, many);
    };
    put(counts.ranges, "range", "ranges");
    put(counts.kernels, "kernel", "kernels");
    put(counts.copies, "copy", "copies");
    put(counts.calls, "CUDA call", "CUDA calls");
    put(counts.collectives, "NCCL operation", "NCCL operations");
    put(counts.samples, "sample of threads", "samples of threads");
    return list;
}

std::string ending(int status) {
    if (status <= 128) return fmt::format("the command ended with status {}", status);
    const char* name = ::sigabbrev_np(status - 128);
    if (name == nullptr) return fmt::format("the command ended with status {}", status);
    return fmt::format("the command ended with status {} (SIG{})", status, name);
}

std::string shell_line(const std::vector<std::string>& arguments) {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
    std::string line;
    for (const std::string& argument : arguments) {
        if (!line.empty()) line += ' ';
        if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
            line += argument;
            continue;
        }
        line += '\'';
        for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
        line += '\'';
    }
    return line;
}

std::uint64_t file_bytes(const std::string& path) {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    return error ? 0 : bytes;
}

std::string numbered(const std::string& path, int number) {
    if (number < 2) return path;
    const fs::path whole(path);
    return (whole.parent_path() /
            fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string()))
        .string();
}

}  // namespace shardscope::profiler
