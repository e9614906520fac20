// Compares what is on the screen with what a script expects. No Dear ImGui; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "viewer/script/script.h"

namespace shardscope::viewer::script {

std::optional<double> parse_number(std::string_view text);  // the whole text must be one finite number

// "12,345.6 MiB" is 12345.6 and "MiB"; "-59.3 %" is -59.3 and "%". nullopt: no number at the start.
struct Figure {
    double value = 0;
    std::string unit;
};
std::optional<Figure> parse_figure(const std::string& text);

// The allowed deviation of a figure: "0.1" in its unit, "1%" of the expected value. nullopt: neither.
std::optional<double> parse_tolerance(const std::string& text, double expected);

// `shown`: the item's text, nullopt if there is no such item. Returns "" if it is as expected, else the
// expected and the actual text: `expected "12", it shows "13"`.
std::string mismatch(const Expect& expected, const std::optional<std::string>& shown);

}  // namespace shardscope::viewer::script
