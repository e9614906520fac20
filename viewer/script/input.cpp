// See input.h. Dear ImGui before 1.87 reads plain fields, later versions a queue of events.
#include "viewer/script/input.h"

#if IMGUI_VERSION_NUM < 18700
#include <GLFW/glfw3.h>
#endif

namespace shardscope::viewer::script {

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

void apply(const Input& input) {
    ImGuiIO& io = ImGui::GetIO();
    if (input.seconds > 0) io.DeltaTime = input.seconds;
#if IMGUI_VERSION_NUM >= 18700
    io.AddMousePosEvent(input.mouse.x, input.mouse.y);
    io.AddMouseButtonEvent(0, input.left);
    io.AddMouseButtonEvent(1, input.right);
    io.AddKeyEvent(ImGuiMod_Ctrl, input.ctrl);
    io.AddKeyEvent(ImGuiMod_Shift, input.shift);
    if (input.wheel != 0) io.AddMouseWheelEvent(0, input.wheel);
#else
    io.MousePos = input.mouse;
    io.MouseDown[0] = input.left;
    io.MouseDown[1] = input.right;
    io.KeyCtrl = input.ctrl;
    io.KeyShift = input.shift;
    io.MouseWheel = input.wheel;
#endif
    if (input.key) set_chord_down(*input.key, input.key_down);
    if (!input.text.empty()) io.AddInputCharactersUTF8(input.text.c_str());
}

}  // namespace shardscope::viewer::script
