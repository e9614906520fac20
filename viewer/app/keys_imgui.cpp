// See keys.h. Reads and sets which keys are pressed. Dear ImGui has named keys since 1.87; older versions
// need the backend's codes.
#include <imgui.h>
#include <imgui_internal.h>

#include "viewer/model/keys.h"

#if IMGUI_VERSION_NUM < 18700
#include <GLFW/glfw3.h>
#endif

namespace shardscope::viewer::model {
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
        SHARDSCOPE_KEY(b, B, B);
        SHARDSCOPE_KEY(c, C, C);
        SHARDSCOPE_KEY(d, D, D);
        SHARDSCOPE_KEY(e, E, E);
        SHARDSCOPE_KEY(f, F, F);
        SHARDSCOPE_KEY(g, G, G);
        SHARDSCOPE_KEY(h, H, H);
        SHARDSCOPE_KEY(i, I, I);
        SHARDSCOPE_KEY(j, J, J);
        SHARDSCOPE_KEY(k, K, K);
        SHARDSCOPE_KEY(l, L, L);
        SHARDSCOPE_KEY(m, M, M);
        SHARDSCOPE_KEY(n, N, N);
        SHARDSCOPE_KEY(o, O, O);
        SHARDSCOPE_KEY(p, P, P);
        SHARDSCOPE_KEY(q, Q, Q);
        SHARDSCOPE_KEY(r, R, R);
        SHARDSCOPE_KEY(s, S, S);
        SHARDSCOPE_KEY(t, T, T);
        SHARDSCOPE_KEY(u, U, U);
        SHARDSCOPE_KEY(v, V, V);
        SHARDSCOPE_KEY(w, W, W);
        SHARDSCOPE_KEY(x, X, X);
        SHARDSCOPE_KEY(y, Y, Y);
        SHARDSCOPE_KEY(z, Z, Z);
        SHARDSCOPE_KEY(digit_0, 0, 0);
        SHARDSCOPE_KEY(digit_1, 1, 1);
        SHARDSCOPE_KEY(digit_2, 2, 2);
        SHARDSCOPE_KEY(digit_3, 3, 3);
        SHARDSCOPE_KEY(digit_4, 4, 4);
        SHARDSCOPE_KEY(digit_5, 5, 5);
        SHARDSCOPE_KEY(digit_6, 6, 6);
        SHARDSCOPE_KEY(digit_7, 7, 7);
        SHARDSCOPE_KEY(digit_8, 8, 8);
        SHARDSCOPE_KEY(digit_9, 9, 9);
        SHARDSCOPE_KEY(f1, F1, F1);
        SHARDSCOPE_KEY(f2, F2, F2);
        SHARDSCOPE_KEY(f3, F3, F3);
        SHARDSCOPE_KEY(f4, F4, F4);
        SHARDSCOPE_KEY(f5, F5, F5);
        SHARDSCOPE_KEY(f6, F6, F6);
        SHARDSCOPE_KEY(f7, F7, F7);
        SHARDSCOPE_KEY(f8, F8, F8);
        SHARDSCOPE_KEY(f9, F9, F9);
        SHARDSCOPE_KEY(f10, F10, F10);
        SHARDSCOPE_KEY(f11, F11, F11);
        SHARDSCOPE_KEY(f12, F12, F12);
        SHARDSCOPE_KEY(escape, Escape, ESCAPE);
        SHARDSCOPE_KEY(tab, Tab, TAB);
        SHARDSCOPE_KEY(enter, Enter, ENTER);
        SHARDSCOPE_KEY(space, Space, SPACE);
        SHARDSCOPE_KEY(backspace, Backspace, BACKSPACE);
        SHARDSCOPE_KEY(del, Delete, DELETE);
        SHARDSCOPE_KEY(left, LeftArrow, LEFT);
        SHARDSCOPE_KEY(right, RightArrow, RIGHT);
        SHARDSCOPE_KEY(up, UpArrow, UP);
        SHARDSCOPE_KEY(down, DownArrow, DOWN);
        SHARDSCOPE_KEY(home, Home, HOME);
        SHARDSCOPE_KEY(end, End, END);
        SHARDSCOPE_KEY(page_up, PageUp, PAGE_UP);
        SHARDSCOPE_KEY(page_down, PageDown, PAGE_DOWN);
        SHARDSCOPE_KEY(comma, Comma, COMMA);
        SHARDSCOPE_KEY(period, Period, PERIOD);
        SHARDSCOPE_KEY(slash, Slash, SLASH);
        SHARDSCOPE_KEY(minus, Minus, MINUS);
        SHARDSCOPE_KEY(equal, Equal, EQUAL);
    }
    return Code{};
}

}  // namespace

bool chord_pressed(const Chord& chord, bool repeat) {
    const ImGuiIO& io = ImGui::GetIO();
    return io.KeyCtrl == chord.ctrl && io.KeyShift == chord.shift && io.KeyAlt == chord.alt &&
           ImGui::IsKeyPressed(code_of(chord.key), repeat);
}

void set_chord_down(const Chord& chord, bool down) {
    ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM >= 18700
    io.AddKeyEvent(ImGuiMod_Ctrl, down && chord.ctrl);
    io.AddKeyEvent(ImGuiMod_Shift, down && chord.shift);
    io.AddKeyEvent(ImGuiMod_Alt, down && chord.alt);
    io.AddKeyEvent(code_of(chord.key), down);
#else
    io.KeyCtrl = down && chord.ctrl;
    io.KeyShift = down && chord.shift;
    io.KeyAlt = down && chord.alt;
    io.KeysDown[code_of(chord.key)] = down;
#endif
}

void prepare_keys() {
#if IMGUI_VERSION_NUM < 18700
    ImGuiIO& io = ImGui::GetIO();
    io.KeyMap[ImGuiKey_Tab] = GLFW_KEY_TAB;
    io.KeyMap[ImGuiKey_LeftArrow] = GLFW_KEY_LEFT;
    io.KeyMap[ImGuiKey_RightArrow] = GLFW_KEY_RIGHT;
    io.KeyMap[ImGuiKey_UpArrow] = GLFW_KEY_UP;
    io.KeyMap[ImGuiKey_DownArrow] = GLFW_KEY_DOWN;
    io.KeyMap[ImGuiKey_PageUp] = GLFW_KEY_PAGE_UP;
    io.KeyMap[ImGuiKey_PageDown] = GLFW_KEY_PAGE_DOWN;
    io.KeyMap[ImGuiKey_Home] = GLFW_KEY_HOME;
    io.KeyMap[ImGuiKey_End] = GLFW_KEY_END;
    io.KeyMap[ImGuiKey_Insert] = GLFW_KEY_INSERT;
    io.KeyMap[ImGuiKey_Delete] = GLFW_KEY_DELETE;
    io.KeyMap[ImGuiKey_Backspace] = GLFW_KEY_BACKSPACE;
    io.KeyMap[ImGuiKey_Space] = GLFW_KEY_SPACE;
    io.KeyMap[ImGuiKey_Enter] = GLFW_KEY_ENTER;
    io.KeyMap[ImGuiKey_Escape] = GLFW_KEY_ESCAPE;
    io.KeyMap[ImGuiKey_KeyPadEnter] = GLFW_KEY_KP_ENTER;
    io.KeyMap[ImGuiKey_A] = GLFW_KEY_A;
    io.KeyMap[ImGuiKey_C] = GLFW_KEY_C;
    io.KeyMap[ImGuiKey_V] = GLFW_KEY_V;
    io.KeyMap[ImGuiKey_X] = GLFW_KEY_X;
    io.KeyMap[ImGuiKey_Y] = GLFW_KEY_Y;
    io.KeyMap[ImGuiKey_Z] = GLFW_KEY_Z;
#endif
}

void let_enter_choose() {
#if IMGUI_VERSION_NUM < 18700
    ImGuiIO& io = ImGui::GetIO();
    const bool moves = (io.ConfigFlags & ImGuiConfigFlags_NavEnableKeyboard) != 0;
    if (moves && io.KeysDown[code_of(Key::enter)]) io.NavInputs[ImGuiNavInput_Activate] = 1;
#endif
}

void show_where_keys_are() {
#if IMGUI_VERSION_NUM < 19140
    ImGui::GetCurrentContext()->NavDisableHighlight = false;
#else
    ImGui::SetNavCursorVisible(true);
#endif
}

void stay_in_menu() {
    ImGui::NavMoveRequestCancel();
}

}  // namespace shardscope::viewer::model
