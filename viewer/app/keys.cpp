// See keys.h: the names.
#include "viewer/app/keys.h"

namespace shardscope::viewer {
namespace {

const char* key_text(Key key) {
    switch (key) {
        case Key::a:
            return "A";
        case Key::d:
            return "D";
        case Key::f:
            return "F";
        case Key::l:
            return "L";
        case Key::o:
            return "O";
        case Key::q:
            return "Q";
        case Key::r:
            return "R";
        case Key::s:
            return "S";
        case Key::w:
            return "W";
        case Key::z:
            return "Z";
        case Key::digit_1:
            return "1";
        case Key::digit_2:
            return "2";
        case Key::digit_3:
            return "3";
        case Key::digit_4:
            return "4";
        case Key::digit_5:
            return "5";
        case Key::digit_6:
            return "6";
        case Key::f1:
            return "F1";
        case Key::escape:
            return "Esc";
        case Key::tab:
            return "Tab";
        case Key::left:
            return "Left";
        case Key::right:
            return "Right";
        case Key::up:
            return "Up";
        case Key::down:
            return "Down";
        case Key::comma:
            return ",";
        case Key::period:
            return ".";
        case Key::slash:
            return "/";
    }
    return "";
}

}  // namespace

std::string chord_text(const Chord& chord) {
    if (chord == Chord{Key::slash, false, true}) return "?";
    std::string text = chord.ctrl ? "Ctrl+" : "";
    if (chord.shift) text += "Shift+";
    return text + key_text(chord.key);
}

}  // namespace shardscope::viewer
