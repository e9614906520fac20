// The contents of a script: one command per line, `#` begins a comment, words with blanks are in double
// quotes (inside them \" \\ \n \t). Reading is separate from running (runner.h), so that a script with an
// error is refused as a whole, before it runs. No Dear ImGui; any thread.
//
//   open PATH ...                    opens files separately, or a session
//   open merged PATH ...             on one clock
//   close                            the active trace
//   follow LINK                      goes to a link's place, as if it were pasted
//   panel NAME                       shows a panel, in the pane that has the focus
//   panes TEXT                       divides the window: timeline / memory, timeline |40 (memory / units)
//   click ITEM [right|double] [ctrl] [shift] [at X Y]      X Y: pixels from the item's corner, or 10% 50%
//   hover ITEM [at X Y]
//   drag ITEM DX DY [ctrl] [shift] [at X Y]                pixels;  drag ITEM to ITEM
//   wheel ITEM NOTCHES [ctrl] [shift] [at X Y]             up is positive
//   key CHORD                        "Ctrl+Shift+P", "F", "PgDn"
//   type TEXT                        into the field that has the keyboard: the rest of the line, unchanged
//   action ID                        runs an action of the menus and shortcuts
//   wait [SECONDS]                   until all work is done; fails if that takes longer (default: 120)
//   frames N                         draws N frames
//   expect ITEM TEXT                 also: is TEXT, contains TEXT, matches REGEX, ~ VALUE TOLERANCE,
//                                    shown, absent; waits while work runs
//   print ITEM                       its text, to standard output;  list [PREFIX]  all names and texts
//   set area A:B|none [ROW ...]      marks an area of these rows or groups of the timeline, or of all
//   set limit|visible A:B|none
//   set size WxH   set rank N   set trace NAME   set scale PERCENT   set appearance dark|light
//   shot FILE.png [ITEM]             a picture of the window or of an item ("panel": the panel alone)
//   export table NAME FILE.csv|.json
//   export report|timeline|visible FILE.html
//   export session FILE
//   quit
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "viewer/model/keys.h"
#include "viewer/model/session.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::script {

// A position along one side of an item: pixels from its start, or a fraction of its length.
struct Offset {
    double value = 0.5;
    bool share = true;
};
struct Spot {  // a place on an item; by default its middle
    std::string item;
    Offset x, y;
};
struct Modifiers {
    bool ctrl = false, shift = false;
};

struct Open {
    std::vector<std::string> paths;
    bool merged = false;
};
struct Close {};
struct ShowPanel {
    std::string name;
};
struct ArrangePanes {
    std::string text;
};
struct Click {
    Spot spot;
    Modifiers with;
    bool right = false, twice = false;
};
struct Hover {
    Spot spot;
};
struct Drag {
    Spot from;
    Modifiers with;
    std::string to;  // an item to drag to; empty: by dx, dy
    double dx = 0, dy = 0;
};
struct Wheel {
    Spot spot;
    Modifiers with;
    double notches = 0;
};
struct PressKey {
    model::Chord chord;
};
struct TypeText {
    std::string text;
};
struct RunAction {
    std::string id;
};
struct Wait {
    double seconds = 120;
};
struct Frames {
    int count = 1;
};
enum class Test { is, contains, matches, about, shown, absent };
struct Expect {
    std::string item;
    Test test = Test::is;
    std::string text;       // the expected text; for Test::about, the number
    std::string tolerance;  // for Test::about: "0.1" or "1%"
};
struct Print {
    std::string item;
};
struct List {
    std::string prefix;
};
struct SetLimit {
    std::optional<model::TimeRange> range;
};
struct SetArea {
    std::optional<model::MarkedArea> area;
};
struct SetVisible {
    model::TimeRange range;
};
struct SetSize {
    int width = 0, height = 0;
};
struct SetRank {
    int number = 0;
};
struct SetTrace {
    std::string name;
};
struct SetScale {
    int percent = 100;
};
struct SetAppearance {
    theme::Appearance appearance = theme::Appearance::dark;
};
struct Shot {
    std::string file, item;
};
struct ExportTable {
    std::string table, file;
};
struct ExportReport {
    std::string file;
    enum class What { report, timeline, visible_timeline } what = What::report;
};
struct FollowLink {
    std::string text;
};
struct ExportSession {
    std::string file;
};
struct Quit {};

using Act = std::variant<Open, Close, ShowPanel, ArrangePanes, Click, Hover, Drag, Wheel, PressKey, TypeText,
                         RunAction, Wait, Frames, Expect, Print, List, SetLimit, SetArea, SetVisible, SetSize,
                         SetRank, SetTrace, SetScale, SetAppearance, Shot, ExportTable, ExportReport,
                         ExportSession, FollowLink, Quit>;

struct Command {
    std::size_t line = 0;  // in the file, from 1
    std::string source;    // the unchanged line
    Act act;
};

// Either all commands, or the error: "run.script:7: clik: there is no such command; did you mean click?"
struct Script {
    std::string file;
    std::vector<Command> commands;
    std::string error;  // empty: there is none
};
Script parse_script(std::string_view file, std::string_view text);
Script read_script(const std::string& file);  // also reports an unreadable file

}  // namespace shardscope::viewer::script
