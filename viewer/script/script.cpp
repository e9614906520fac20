// See script.h. Each command has one function, which takes its words from the left.
#include "viewer/script/script.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "viewer/app/options.h"
#include "viewer/app/panes.h"
#include "viewer/script/match.h"
#include "viewer/script/words.h"

namespace shardscope::viewer::script {
namespace {

// The error in a line; caught by parse_script(), which knows the line's number.
struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The words of a line, taken from the left.
class Line {
  public:
    explicit Line(Words words) : words_(std::move(words)) {}
    const std::string& command() const { return words_.words.front(); }
    const std::string& rest() const { return words_.rest; }
    bool more() const { return next_ < words_.words.size(); }

    std::string word(const char* what) {
        if (!more()) throw Wrong(fmt::format("{} expects {}", command(), what));
        return words_.words[next_++];
    }
    bool takes(std::string_view keyword) {
        if (!more() || words_.words[next_] != keyword) return false;
        ++next_;
        return true;
    }
    double number(const char* what) {
        const std::string text = word(what);
        const auto value = parse_number(text);
        if (!value) throw Wrong(fmt::format("{} expects {}, not {}", command(), what, text));
        return *value;
    }
    int whole(const char* what, int least, int most) {
        const double value = number(what);
        if (value != std::floor(value) || value < least || value > most) {
            throw Wrong(
                fmt::format("{} expects {}, a whole number from {} to {}", command(), what, least, most));
        }
        return static_cast<int>(value);
    }
    void end() const {
        if (more())
            throw Wrong(fmt::format("{}: \"{}\" is one word too many", command(), words_.words[next_]));
    }

  private:
    Words words_;
    std::size_t next_ = 1;
};

Offset take_offset(Line& line) {
    constexpr const char* kWhat =
        "a place after \"at\": two distances in pixels or, as 50%, in the item's size";
    std::string text = line.word(kWhat);
    const bool share = text.ends_with('%');
    if (share) text.pop_back();
    const auto value = parse_number(text);
    if (!value) throw Wrong(fmt::format("{} expects {}, not {}", line.command(), kWhat, text));
    return {share ? *value / 100 : *value, share};
}

bool take_modifier(Line& line, Modifiers& with) {
    if (line.takes("ctrl")) return with.ctrl = true;
    if (line.takes("shift")) return with.shift = true;
    return false;
}

bool take_place(Line& line, Spot& spot) {
    if (!line.takes("at")) return false;
    spot.x = take_offset(line);
    spot.y = take_offset(line);
    return true;
}

Act parse_click(Line& line) {
    Click click;
    click.spot.item = line.word("an item's name");
    while (line.more()) {
        if (line.takes("right")) {
            click.right = true;
        } else if (line.takes("double")) {
            click.twice = true;
        } else if (!take_modifier(line, click.with) && !take_place(line, click.spot)) {
            break;
        }
    }
    return click;
}

Act parse_hover(Line& line) {
    Hover hover;
    hover.spot.item = line.word("an item's name");
    take_place(line, hover.spot);
    return hover;
}

Act parse_drag(Line& line) {
    Drag drag;
    drag.from.item = line.word("an item's name");
    if (line.takes("to")) {
        drag.to = line.word("the name of the item to drag it to");
    } else {
        drag.dx = line.number("how far to the right, in pixels");
        drag.dy = line.number("how far down, in pixels");
    }
    while (take_modifier(line, drag.with) || take_place(line, drag.from)) {
    }
    return drag;
}

Act parse_wheel(Line& line) {
    Wheel wheel;
    wheel.spot.item = line.word("an item's name");
    wheel.notches = line.number("how many notches up");
    while (take_modifier(line, wheel.with) || take_place(line, wheel.spot)) {
    }
    return wheel;
}

Act parse_key(Line& line) {
    const std::string text = line.word("a key, as Ctrl+Shift+P, F or PgDn");
    const auto chord = model::parse_chord(text);
    if (!chord) throw Wrong(fmt::format("no key is called {}; write it as Ctrl+Shift+P, F or PgDn", text));
    return PressKey{*chord};
}

Act parse_expect(Line& line) {
    Expect expect;
    expect.item = line.word("an item's name");
    if (line.takes("absent")) {
        expect.test = Test::absent;
    } else if (line.takes("shown")) {
        expect.test = Test::shown;
    } else if (line.takes("contains")) {
        expect.test = Test::contains;
        expect.text = line.word("the text that it contains");
    } else if (line.takes("matches")) {
        expect.test = Test::matches;
        expect.text = line.word("a regular expression");
        try {
            const std::regex check(expect.text);
        } catch (const std::regex_error&) {
            throw Wrong(fmt::format("{} is not a regular expression", expect.text));
        }
    } else if (line.takes("~")) {
        expect.test = Test::about;
        expect.text = line.word("the figure after ~");
        const auto figure = parse_figure(expect.text);
        if (!figure) throw Wrong(fmt::format("expect expects a figure after ~, not {}", expect.text));
        expect.tolerance = line.word("how far the figure may be off, as 0.1 or 1%");
        if (!parse_tolerance(expect.tolerance, figure->value)) {
            throw Wrong(fmt::format("{} is not a tolerance; write it as 0.1 or 1%", expect.tolerance));
        }
    } else {
        line.takes("is");
        // Joins several words into one text, so that figures with units need no quotes.
        expect.text = line.word("a text");
        while (line.more()) expect.text += " " + line.word("a text");
    }
    return expect;
}

model::TimeRange take_range(Line& line) {
    const std::string text = line.word("a time range, as 10:20 in ms or 500us:2ms");
    const auto range = app::parse_range(text);
    if (!range)
        throw Wrong(fmt::format("{} is not a time range; write it as 10:20 in ms or 500us:2ms", text));
    return *range;
}

Act parse_area(Line& line) {
    if (line.takes("none")) return SetArea{};
    model::MarkedArea area{.time = take_range(line), .rows = {}, .name = {}};
    while (line.more()) area.rows.push_back(line.word("a row's key"));
    return SetArea{std::move(area)};
}

Act parse_set(Line& line) {
    const std::string what =
        line.word("what to set: limit, area, visible, size, rank, trace, scale or appearance");
    if (what == "area") return parse_area(line);
    if (what == "limit") return line.takes("none") ? SetLimit{} : SetLimit{take_range(line)};
    if (what == "visible") return SetVisible{take_range(line)};
    if (what == "size") {
        const std::string text = line.word("a size, as 1600x900");
        const auto size = app::parse_size(text);
        if (!size) throw Wrong(fmt::format("{} is not a size; write it as 1600x900, 64 to 16384 each", text));
        return SetSize{size->width, size->height};
    }
    if (what == "rank") return SetRank{line.whole("a rank", 0, 1 << 30)};
    if (what == "trace") return SetTrace{line.word("the name of an open trace")};
    if (what == "scale") return SetScale{line.whole("a scale in percent", 50, 300)};
    if (what == "appearance") {
        const std::string text = line.word("dark or light");
        if (text != "dark" && text != "light") throw Wrong("set appearance expects dark or light");
        return SetAppearance{text == "dark" ? theme::Appearance::dark : theme::Appearance::light};
    }
    throw Wrong(fmt::format(
        "set {}: there is no such setting{}", what,
        did_you_mean(what, {"limit", "area", "visible", "size", "rank", "trace", "scale", "appearance"})));
}

Act parse_export(Line& line) {
    const std::string what = line.word("table, report, timeline, visible or session");
    if (what == "report") return ExportReport{line.word("the report's file")};
    if (what == "timeline" || what == "visible") {
        return ExportReport{line.word("the timeline's file"), what == "timeline"
                                                                  ? ExportReport::What::timeline
                                                                  : ExportReport::What::visible_timeline};
    }
    if (what == "session") return ExportSession{line.word("the session's file")};
    if (what != "table") {
        throw Wrong(fmt::format(
            "export {}: export table NAME FILE, or export report, timeline, visible or session FILE", what));
    }
    ExportTable table{line.word("the table's name"), ""};
    table.file = line.word("the file, .csv or .json");
    if (!table.file.ends_with(".csv") && !table.file.ends_with(".json")) {
        throw Wrong(fmt::format("export table: {} must end in .csv or .json", table.file));
    }
    return table;
}

Act parse_open(Line& line) {
    Open open;
    open.merged = line.takes("merged");
    do {
        open.paths.push_back(line.word("a file"));
    } while (line.more());
    return open;
}

struct Verb {
    const char* name;
    Act (*parse)(Line&);
};
constexpr Verb kVerbs[] = {
    {"open", parse_open},
    {"close", [](Line&) -> Act { return Close{}; }},
    {"panel", [](Line& l) -> Act { return ShowPanel{l.word("a panel's name")}; }},
    {"click", parse_click},
    {"hover", parse_hover},
    {"drag", parse_drag},
    {"wheel", parse_wheel},
    {"key", parse_key},
    {"action", [](Line& l) -> Act { return RunAction{l.word("an action's id")}; }},
    {"wait", [](Line& l) -> Act { return l.more() ? Wait{l.number("seconds")} : Wait{}; }},
    {"frames", [](Line& l) -> Act { return Frames{l.whole("a number of frames", 1, 100'000)}; }},
    {"expect", parse_expect},
    {"print", [](Line& l) -> Act { return Print{l.word("an item's name")}; }},
    {"list", [](Line& l) -> Act { return List{l.more() ? l.word("a prefix") : ""}; }},
    {"set", parse_set},
    {"shot",
     [](Line& l) -> Act {
         Shot shot{l.word("a file"), ""};
         if (l.more()) shot.item = l.word("an item's name");
         return shot;
     }},
    {"export", parse_export},
    {"follow", [](Line& l) -> Act { return FollowLink{l.word("a link, shardscope:...")}; }},
    {"quit", [](Line&) -> Act { return Quit{}; }},
};

Act parse_act(Line& line) {
    if (line.command() == "panes") {
        if (!app::parse_panes(line.rest())) throw Wrong(app::not_panes(line.rest()));
        return ArrangePanes{line.rest()};
    }
    if (line.command() == "type") {
        if (line.rest().empty()) throw Wrong("type expects a text");
        return TypeText{line.rest()};
    }
    for (const Verb& verb : kVerbs) {
        if (line.command() != verb.name) continue;
        Act act = verb.parse(line);
        line.end();
        return act;
    }
    std::vector<std::string> names{"type", "panes"};
    for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
    throw Wrong(
        fmt::format("{}: there is no such command{}", line.command(), did_you_mean(line.command(), names)));
}

}  // namespace

Script parse_script(std::string_view file, std::string_view text) {
    Script script{std::string(file), {}, {}};
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view source = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        try {
            Words words = split_words(source);
            if (!words.error.empty()) throw Wrong(words.error);
            if (words.words.empty()) continue;
            Line line(std::move(words));
            Act act = parse_act(line);
            script.commands.push_back({number, std::string(source), std::move(act)});
        } catch (const Wrong& wrong) {
            script.error = fmt::format("{}:{}: {}.", file, number, wrong.what());
            if (script.error.ends_with("?.")) script.error.pop_back();
            script.commands.clear();
            break;
        }
    }
    return script;
}

Script read_script(const std::string& file) {
    Script unread{file, {}, fmt::format("{}: the script cannot be read; name a file of commands.", file)};
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) return unread;
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(text << in.rdbuf()))) return unread;
    return parse_script(file, text.str());
}

}  // namespace shardscope::viewer::script
