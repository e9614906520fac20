// The files in which Linux says what it does: /proc and /sys, or a folder that a test plays them in. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::profiler {

class SystemFiles {
  public:
    // `root` is put before every path: "" for the machine's own.
    explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

    // The file's text, at most its first `most` bytes. None if it cannot be read: `error` is then errno.
    std::optional<std::string> read(const std::string& path, int* error = nullptr,
                                    std::size_t most = 65536) const;
    // Its text without the end of its line; empty if it cannot be read.
    std::string line(const std::string& path) const;
    // The number that it begins with.
    std::optional<std::uint64_t> number(const std::string& path, int* error = nullptr) const;

    bool exists(const std::string& path) const;
    // The names in a folder, in the order in which people count: "mlx5_2" before "mlx5_10".
    std::vector<std::string> names_in(const std::string& folder) const;
    // The last part of what a link points to, empty if it is none: of .../device a PCI address.
    std::string target_of(const std::string& link) const;

  private:
    std::string root_;
};

// The number behind a word at the start of a line: number_behind("MemFree: 12 kB\n", "MemFree:") is 12.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view word);

// How many numbers a list of the kernel's has: of "0-3,8" 5; 0 if it is not one.
std::int64_t count_of_list(std::string_view list);

}  // namespace shardscope::profiler
