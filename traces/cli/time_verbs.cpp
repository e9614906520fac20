// The commands that show where time went and that have options of their own.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "traces/analysis/modules/operators.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"

namespace shardscope::traces {
namespace {

// "earlier_step" is not a kind that a person could change.
constexpr auto kScalable = static_cast<std::ptrdiff_t>(PathKind::earlier_step);

// `--what-if communication=0.5,host=2`: factors for kinds of time. Throws UsageError where the text is not a
// list of KIND=FACTOR.
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

}  // namespace

Work idle_verb(Options& options) {
    const double& kernel_wait_us =
        options.number("--kernel-wait-us", 30, "US",
                       "The longest gap that the device itself needs between two kernels (30)");
    return [&](const Inputs& inputs) {
        if (!(kernel_wait_us >= 0 && kernel_wait_us <= 1e12)) {
            throw UsageError(
                fmt::format("--kernel-wait-us {}: it must be from 0 to 1e12 us", kernel_wait_us));
        }
        const std::int64_t ns = std::llround(kernel_wait_us * 1e3);
        return analyse_devices(inputs,
                               [ns](const Trace& t, const Selection& s) { return idle_report(t, s, ns); });
    };
}

Work kernels_verb(Options& options) {
    const auto& top = top_option(options);
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        return analyse_devices(
            inputs, [most](const Trace& t, const Selection& s) { return kernels_report(t, s, most); });
    };
}

Work operators_verb(Options& options) {
    const bool& by_shape = options.flag("--by-shape", "By name and the shapes of the inputs");
    const auto& top = top_option(options);
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        return analyse(inputs, [&, most](const Trace& t, const Selection& s) {
            return operators_report(t, s, by_shape, most);
        });
    };
}

Work critical_path_verb(Options& options) {
    const std::string& what_if = options.text("--what-if", "KIND=FACTOR,...",
                                              "What a step would take if kinds of time were scaled, for "
                                              "example communication=0.5,waiting=0");
    return [&](const Inputs& inputs) {
        std::optional<PathFactors> factors;
        if (!what_if.empty()) factors = parse_what_if(what_if);
        return analyse(inputs,
                       [&](const Trace& t, const Selection& s) { return critical_path(t, s, factors); });
    };
}

}  // namespace shardscope::traces
