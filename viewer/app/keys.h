// Keys by our own names, whatever version of Dear ImGui is below, and how a shortcut is written. Frame
// thread.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::viewer {

enum class Key : std::uint8_t {
    a,
    d,
    f,
    l,
    o,
    q,
    r,
    s,
    w,
    z,
    digit_1,
    digit_2,
    digit_3,
    digit_4,
    digit_5,
    digit_6,
    f1,
    escape,
    tab,
    left,
    right,
    up,
    down,
    comma,
    period,
    slash,
};

struct Chord {
    Key key = Key::escape;
    bool ctrl = false, shift = false;
    bool operator==(const Chord&) const = default;
};

std::string chord_text(const Chord& chord);  // "Ctrl+O", "Left"

// Pressed in this frame, with exactly these modifiers; also a held key's repeats if `repeat`.
// (keys_imgui.cpp)
bool chord_pressed(const Chord& chord, bool repeat);

}  // namespace shardscope::viewer
