#include "traces/cli/terminal.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "traces/report/report.h"

namespace shardscope::traces {
namespace {

constexpr std::size_t kLeast = 40, kMost = 1000;

// Returns 0 if it is not a number.
std::size_t number(const char* text) {
    if (text == nullptr) return 0;
    const std::string_view digits(text);
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
}

std::size_t of_terminal() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::size_t table_width() {
    for (const std::size_t width : {number(std::getenv("COLUMNS")), of_terminal()}) {
        if (width > 0) return std::clamp(width, kLeast, kMost);
    }
    return kTableWidth;
}

}  // namespace shardscope::traces
