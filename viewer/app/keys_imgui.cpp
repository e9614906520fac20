// See keys.h: which keys are pressed. Dear ImGui has named keys since 1.87; before, the backend's codes are
// used.
#include <imgui.h>

#include "viewer/app/keys.h"

#if IMGUI_VERSION_NUM < 18700
#include <GLFW/glfw3.h>
#endif

namespace shardscope::viewer {
namespace {

#if IMGUI_VERSION_NUM >= 18700
using Code = ImGuiKey;
#define SHARDSCOPE_KEY(ours, imgui, glfw) \
    case Key::ours:                       \
        return ImGuiKey_##imgui
#else
using Code = int;
#define SHARDSCOPE_KEY(ours, imgui, glfw) \
    case Key::ours:                       \
        return GLFW_KEY_##glfw
#endif

Code code_of(Key key) {
    switch (key) {
        SHARDSCOPE_KEY(a, A, A);
        SHARDSCOPE_KEY(d, D, D);
        SHARDSCOPE_KEY(f, F, F);
        SHARDSCOPE_KEY(l, L, L);
        SHARDSCOPE_KEY(o, O, O);
        SHARDSCOPE_KEY(q, Q, Q);
        SHARDSCOPE_KEY(r, R, R);
        SHARDSCOPE_KEY(s, S, S);
        SHARDSCOPE_KEY(w, W, W);
        SHARDSCOPE_KEY(z, Z, Z);
        SHARDSCOPE_KEY(digit_1, 1, 1);
        SHARDSCOPE_KEY(digit_2, 2, 2);
        SHARDSCOPE_KEY(digit_3, 3, 3);
        SHARDSCOPE_KEY(digit_4, 4, 4);
        SHARDSCOPE_KEY(digit_5, 5, 5);
        SHARDSCOPE_KEY(digit_6, 6, 6);
        SHARDSCOPE_KEY(f1, F1, F1);
        SHARDSCOPE_KEY(escape, Escape, ESCAPE);
        SHARDSCOPE_KEY(tab, Tab, TAB);
        SHARDSCOPE_KEY(left, LeftArrow, LEFT);
        SHARDSCOPE_KEY(right, RightArrow, RIGHT);
        SHARDSCOPE_KEY(up, UpArrow, UP);
        SHARDSCOPE_KEY(down, DownArrow, DOWN);
        SHARDSCOPE_KEY(comma, Comma, COMMA);
        SHARDSCOPE_KEY(period, Period, PERIOD);
        SHARDSCOPE_KEY(slash, Slash, SLASH);
    }
    return Code{};
}

}  // namespace

bool chord_pressed(const Chord& chord, bool repeat) {
    const ImGuiIO& io = ImGui::GetIO();
    return io.KeyCtrl == chord.ctrl && io.KeyShift == chord.shift && !io.KeyAlt &&
           ImGui::IsKeyPressed(code_of(chord.key), repeat);
}

}  // namespace shardscope::viewer
