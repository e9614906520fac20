// See input.h. Dear ImGui before 1.87 reads plain fields, later versions a queue of events.
#include "viewer/script/input.h"

namespace shardscope::viewer::script {

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
