// See keys.h: the names.
#include "viewer/model/keys.h"

#include <array>
#include <string_view>

namespace shardscope::viewer::model {
namespace {

// In the order of Key.
constexpr std::array<std::string_view, kKeys> kNames = {
    "A",    "B",    "C",     "D",     "E",    "F",   "G",    "H",     "I",  "J",    "K",    "L",
    "M",    "N",    "O",     "P",     "Q",    "R",   "S",    "T",     "U",  "V",    "W",    "X",
    "Y",    "Z",    "0",     "1",     "2",    "3",   "4",    "5",     "6",  "7",    "8",    "9",
    "F1",   "F2",   "F3",    "F4",    "F5",   "F6",  "F7",   "F8",    "F9", "F10",  "F11",  "F12",
    "Esc",  "Tab",  "Enter", "Space", "Back", "Del", "Left", "Right", "Up", "Down", "Home", "End",
    "PgUp", "PgDn", ",",     ".",     "/",    "-",   "=",
};

}  // namespace

std::string_view key_name(Key key) {
    return kNames[static_cast<std::size_t>(key)];
}

std::string chord_text(const Chord& chord) {
    if (chord == Chord{Key::slash, false, true}) return "?";
    std::string text = chord.ctrl ? "Ctrl+" : "";
    if (chord.alt) text += "Alt+";
    if (chord.shift) text += "Shift+";
    return text += key_name(chord.key);
}

std::optional<Chord> parse_chord(std::string_view text) {
    Chord chord;
    if (text == "?") return Chord{Key::slash, false, true};
    const auto takes = [&](std::string_view prefix) {
        if (!text.starts_with(prefix)) return false;
        text.remove_prefix(prefix.size());
        return true;
    };
    chord.ctrl = takes("Ctrl+");
    chord.alt = takes("Alt+");
    chord.shift = takes("Shift+");
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] != text) continue;
        chord.key = static_cast<Key>(i);
        return chord;
    }
    return std::nullopt;
}

}  // namespace shardscope::viewer::model
