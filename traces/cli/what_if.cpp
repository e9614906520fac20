#include "traces/cli/what_if.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/core.h>

#include "traces/cli/arguments.h"

namespace shardscope::traces {

namespace {

// "earlier_step" is not a kind that a user could change.
constexpr auto kScalable = static_cast<std::ptrdiff_t>(PathKind::earlier_step);

}  // namespace

PathFactors parse_what_if(const std::string& text) {
    const auto wrong = [&](const std::string& why) {
        std::string names;
        for (std::ptrdiff_t k = 0; k < kScalable; ++k) {
            names += fmt::format("{}{}", k > 0 ? ", " : "", kPathKindNames[static_cast<std::size_t>(k)]);
        }
        return UsageError(fmt::format(
            "--what-if {}: {}; write KIND=FACTOR, for example communication=0.5; the kinds are {}", text, why,
            names));
    };
    PathFactors factors = kUnscaled;
    std::string_view rest = text;
    while (true) {
        const auto comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        const auto equals = part.find('=');
        if (equals == std::string_view::npos) throw wrong(fmt::format("\"{}\" has no =", part));
        const std::string_view name = part.substr(0, equals), number = part.substr(equals + 1);
        const auto kind = std::find(kPathKindNames.begin(), kPathKindNames.begin() + kScalable, name) -
                          kPathKindNames.begin();
        if (kind == kScalable) throw wrong(fmt::format("\"{}\" is not a kind of time", name));
        double& factor = factors[static_cast<std::size_t>(kind)];
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), factor);
        if (error != std::errc() || end != number.data() + number.size() || !(factor >= 0 && factor <= 1e6)) {
            throw wrong(fmt::format("\"{}\" is not a factor from 0 to 1000000", number));
        }
        if (comma == std::string_view::npos) return factors;
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace shardscope::traces
