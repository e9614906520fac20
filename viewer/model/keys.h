// Keys by our own names, for every version of Dear ImGui, and how a shortcut is written. Frame thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::viewer::model {

enum class Key : std::uint8_t {
    a,
    b,
    c,
    d,
    e,
    f,
    g,
    h,
    i,
    j,
    k,
    l,
    m,
    n,
    o,
    p,
    q,
    r,
    s,
    t,
    u,
    v,
    w,
    x,
    y,
    z,
    digit_0,
    digit_1,
    digit_2,
    digit_3,
    digit_4,
    digit_5,
    digit_6,
    digit_7,
    digit_8,
    digit_9,
    f1,
    f2,
    f3,
    f4,
    f5,
    f6,
    f7,
    f8,
    f9,
    f10,
    f11,
    f12,
    escape,
    tab,
    enter,
    space,
    backspace,
    del,
    left,
    right,
    up,
    down,
    home,
    end,
    page_up,
    page_down,
    comma,
    period,
    slash,
    minus,
    equal,
};
inline constexpr int kKeys = static_cast<int>(Key::equal) + 1;

struct Chord {
    Key key = Key::escape;
    bool ctrl = false, shift = false, alt = false;
    bool operator==(const Chord&) const = default;
};

std::string_view key_name(Key key);                       // "O", "Left", "PgUp"
std::string chord_text(const Chord& chord);               // "Ctrl+O", "Left"
std::optional<Chord> parse_chord(std::string_view text);  // the inverse; nullopt: no key has this name

// Pressed in this frame, with exactly these modifiers; also a held key's repeats if `repeat`.
// (keys_imgui.cpp)
bool chord_pressed(const Chord& chord, bool repeat);

// Presses or releases a key and its modifiers as the backend would; for scripts. To be called before
// ImGui::NewFrame(). (keys_imgui.cpp)
void set_chord_down(const Chord& chord, bool down);

// Makes editing keys (Backspace, Ctrl+A ...) work in text fields, and the arrows in menus, where no backend
// has defined them. Call after ImGui::CreateContext(); twice does no harm. (keys_imgui.cpp)
void prepare_keys();

// Where the arrows move in a menu or a list, Enter chooses as Space does; before version 1.87 Dear ImGui
// takes only Space. To be called before ImGui::NewFrame(). (keys_imgui.cpp)
void let_enter_choose();
// Marks the entry that Enter would choose, in a menu that was opened by a key. (keys_imgui.cpp)
void show_where_keys_are();
// Dear ImGui does nothing with an arrow that was pressed in a menu. (keys_imgui.cpp)
void stay_in_menu();

}  // namespace shardscope::viewer::model
