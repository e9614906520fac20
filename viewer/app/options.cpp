// See options.h.
#include "viewer/app/options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "shardscope/version.h"
#include "traces/schema/joined.h"
#include "traces/schema/schema.h"
#include "traces/schema/text.h"
#include "viewer/app/panes.h"
#include "viewer/model/link.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::app {
namespace {

std::optional<std::int64_t> parse_time(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    static constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
        {{"", 1e6}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
    for (const auto& [name, ns] : kUnits) {
        if (unit != name) continue;
        if (std::abs(value * ns) > 4e18) return std::nullopt;
        const std::int64_t time = std::llround(value * ns);
        return model::is_viewable(time) ? std::optional(time) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<int> parse_pixels(std::string_view text) {
    const auto value = traces::schema::number_of<int>(text);
    return value && is_window_size(*value) ? value : std::nullopt;
}

}  // namespace

std::optional<model::TimeRange> parse_range(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto from = parse_time(text.substr(0, colon)), to = parse_time(text.substr(colon + 1));
    if (!from || !to || *to <= *from) return std::nullopt;
    return model::TimeRange{*from, *to};
}

bool is_window_size(int pixels) {
    return pixels >= 64 && pixels <= 16384;
}

std::optional<Size> parse_size(std::string_view text) {
    const std::size_t x = text.find('x');
    if (x == std::string_view::npos) return std::nullopt;
    const auto width = parse_pixels(text.substr(0, x)), height = parse_pixels(text.substr(x + 1));
    if (!width || !height) return std::nullopt;
    return Size{*width, *height};
}

Parsed parse_options(int argc, const char* const* argv, const std::vector<std::string>& panels) {
    Options options;
    std::string size, range, appearance = "dark";
    int scale = 100;
    CLI::App app{
        "Looks at traces of sharded training: timeline, modules, execution summary, memory, runs compared.",
        "shardscope-view"};
    app.set_version_flag(
        "--version", fmt::format("shardscope-view {} (schema {})", kVersion, traces::schema::kSchemaVersion),
        "Print the version of the tool and of the schema, and exit");
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.add_option(
        "FILE", options.files,
        "Trace databases to open, of which several are compared, a session (.shardscope-session), or a "
        "link (shardscope:...) to a place in one of them");
    app.add_option("--session", options.session,
                   "Open the traces of this session file at the places where it was saved")
        ->type_name("FILE");
    app.add_option("--panel", options.panel,
                   "The panel to show: " + traces::schema::joined(panels, ", ") +
                       " (default: start; of a file that holds a plan and no timeline: plan)")
        ->type_name("NAME");
    app.add_option(
           "--panes", options.panes,
           "Divide the window: \"timeline / memory\" above each other, \"timeline |40 (memory / units)\" "
           "side by side, the first with 40 percent")
        ->type_name("TEXT");
    app.add_option("--screenshot", options.screenshot,
                   "Draw the panel to a PNG picture without a display, and exit")
        ->type_name("OUT.png");
    app.add_option(
           "--size", size,
           "Size of the window or picture in pixels (default: 1600x900, of a window that of last time)")
        ->type_name("WxH");
    app.add_option("--range", range,
                   "Show this time range only, since the start of the capture: 10:20 in ms, or with units "
                   "(500us:2ms)")
        ->type_name("A:B");
    app.add_option("--script", options.script,
                   "Carry out the commands in this file without a display, and exit; with --screenshot a "
                   "picture is drawn at its end")
        ->type_name("FILE");
    app.add_flag("--window", options.window, "With --script: drive a window, which stays open at its end");
    app.add_option("--scale", scale, "Scale of the interface in percent, 50 to 300 (default: 100)")
        ->type_name("PERCENT");
    app.add_option("--appearance", appearance, "dark (default) or light")->type_name("NAME");
    app.add_flag("!--no-state", options.state, "Do not restore or save the viewer's state");
    app.footer(
        "Exit status: 0 done, 1 a file cannot be read, a picture not be drawn or a script's expectation is "
        "not met, 2 a wrong command line or script.");
    const auto wrong = [](const std::string& what) {
        fmt::print(stderr, "shardscope-view: {}\n", what);
        return Parsed{std::nullopt, 2};
    };
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};  // --help, --version
        return wrong(fmt::format("{}; see --help.", error.what()));
    }
    if (std::find(panels.begin(), panels.end(), options.panel) == panels.end()) {
        return wrong(fmt::format("--panel {}: there is no such panel; choose one of {}.", options.panel,
                                 traces::schema::joined(panels, ", ")));
    }
    if (app.count("--panes") > 0) {
        const auto divided = parse_panes(options.panes);
        if (!divided) return wrong(fmt::format("--panes: {}.", not_panes(options.panes)));
        for (std::size_t i = 0; i < divided->count(); ++i) {
            if (std::find(panels.begin(), panels.end(), divided->panel(i)) == panels.end())
                return wrong(fmt::format("--panes: there is no panel called {}; choose some of {}.",
                                         divided->panel(i), traces::schema::joined(panels, ", ")));
        }
    }
    if (app.count("--screenshot") > 0 && options.screenshot.empty()) {
        return wrong("--screenshot: the name of the picture is empty; give one that ends in .png.");
    }
    for (const std::string& file : options.files) {
        if (!file.starts_with(model::kLinkScheme)) continue;
        if (!options.link.empty()) return wrong("two links are given; give one.");
        options.link = file;
    }
    std::erase(options.files, options.link);
    if (app.count("--session") > 0 && options.session.empty())
        return wrong("--session: the name of the session is empty; give a file that was saved as a session.");
    if (app.count("--script") > 0 && options.script.empty())
        return wrong("--script: the name of the script is empty; give a file of commands.");
    if (options.window && options.script.empty())
        return wrong("--window: it is for --script FILE; without a script a window opens anyway.");
    if (scale < 50 || scale > 300)
        return wrong(fmt::format("--scale {}: give percent from 50 to 300.", scale));
    if (app.count("--scale") > 0) options.scale = scale;
    options.panel_given = app.count("--panel") > 0;
    if (appearance != "dark" && appearance != "light")
        return wrong(fmt::format("--appearance {}: choose dark or light.", appearance));
    if (app.count("--appearance") > 0)
        options.appearance = appearance == "dark" ? theme::Appearance::dark : theme::Appearance::light;
    if (app.count("--size") > 0) {
        const auto parsed = parse_size(size);
        if (!parsed)
            return wrong(fmt::format(
                "--size {}: not a size; give width x height in pixels from 64 to 16384, as 1600x900.", size));
        options.size_given = true;
        options.width = parsed->width;
        options.height = parsed->height;
    }
    if (app.count("--range") > 0) {
        options.range = parse_range(range);
        if (!options.range)
            return wrong(fmt::format(
                "--range {}: not a time range; give start:end in ms, as 10:20, or with units, as 500us:2ms.",
                range));
    }
    return {options, 0};
}

}  // namespace shardscope::viewer::app
