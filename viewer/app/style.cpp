// See style.h.
#include "viewer/app/style.h"

#include <array>
#include <cmath>
#include <filesystem>

#include <imgui.h>

#include "viewer/app/theme.h"

namespace shardscope::viewer {
namespace {

constexpr float kLarge = 1.9F;  // the second font, for the one figure that matters on a page

void set(ImGuiCol what, Color color, float alpha = 1) {
    ImVec4 value = ImGui::ColorConvertU32ToFloat4(color);
    value.w *= alpha;
    ImGui::GetStyle().Colors[what] = value;
}

void set_colors() {
    ImGui::StyleColorsDark();
    set(ImGuiCol_Text, theme::kText);
    set(ImGuiCol_TextDisabled, theme::kTextDim);
    set(ImGuiCol_WindowBg, theme::kGround);
    set(ImGuiCol_ChildBg, theme::kGround, 0);
    set(ImGuiCol_PopupBg, theme::kSurface, 0.98F);
    set(ImGuiCol_Border, theme::kLine);
    set(ImGuiCol_FrameBg, theme::kRaised);
    set(ImGuiCol_FrameBgHovered, theme::kHover);
    set(ImGuiCol_FrameBgActive, theme::kHover);
    set(ImGuiCol_TitleBg, theme::kSurface);
    set(ImGuiCol_TitleBgActive, theme::kRaised);
    set(ImGuiCol_MenuBarBg, theme::kSurface);
    set(ImGuiCol_ScrollbarBg, theme::kGround, 0.6F);
    set(ImGuiCol_ScrollbarGrab, theme::kHover);
    set(ImGuiCol_ScrollbarGrabHovered, theme::kLine);
    set(ImGuiCol_ScrollbarGrabActive, theme::kAccent);
    set(ImGuiCol_CheckMark, theme::kAccent);
    set(ImGuiCol_SliderGrab, theme::kAccent);
    set(ImGuiCol_SliderGrabActive, theme::kAccent);
    set(ImGuiCol_Button, theme::kRaised);
    set(ImGuiCol_ButtonHovered, theme::kHover);
    set(ImGuiCol_ButtonActive, theme::kAccent, 0.6F);
    set(ImGuiCol_Header, theme::kAccent, 0.25F);
    set(ImGuiCol_HeaderHovered, theme::kAccent, 0.32F);
    set(ImGuiCol_HeaderActive, theme::kAccent, 0.42F);
    set(ImGuiCol_Separator, theme::kLine);
    set(ImGuiCol_Tab, theme::kSurface);
    set(ImGuiCol_TabHovered, theme::kHover);
    set(ImGuiCol_TabActive, theme::kRaised);
    set(ImGuiCol_TabUnfocused, theme::kSurface);
    set(ImGuiCol_TabUnfocusedActive, theme::kRaised);
    set(ImGuiCol_PlotHistogram, theme::kAccent);
    set(ImGuiCol_TableHeaderBg, theme::kRaised);
    set(ImGuiCol_TableBorderStrong, theme::kLine);
    set(ImGuiCol_TableBorderLight, theme::kLine, 0.6F);
    set(ImGuiCol_TableRowBg, theme::kGround, 0);
    set(ImGuiCol_TableRowBgAlt, theme::kText, 0.025F);
    set(ImGuiCol_TextSelectedBg, theme::kAccent, 0.35F);
    set(ImGuiCol_NavHighlight, theme::kAccent);
}

}  // namespace

void apply_style(float scale) {
    ImGuiStyle& style = ImGui::GetStyle();
    style = ImGuiStyle();
    set_colors();
    style.WindowPadding = {10, 8};
    style.FramePadding = {8, 4};
    style.ItemSpacing = {8, 5};
    style.CellPadding = {6, 3};
    style.ScrollbarSize = 12;
    style.WindowRounding = style.PopupRounding = 6;
    style.FrameRounding = style.GrabRounding = style.TabRounding = 4;
    style.ScrollbarRounding = 6;
    style.WindowBorderSize = style.PopupBorderSize = 1;
    style.FrameBorderSize = style.TabBorderSize = style.ChildBorderSize = 0;
    style.ScaleAllSizes(scale);
}

void load_fonts(float scale) {
    static constexpr std::array kPlaces = {
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
        "/usr/share/fonts/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/TTF/DejaVuSans.ttf",
        "/usr/local/share/fonts/dejavu/DejaVuSans.ttf",
    };
    ImGuiIO& io = ImGui::GetIO();
    const float size = std::round(15 * scale);
    for (const char* place : kPlaces) {
        std::error_code error;
        if (!std::filesystem::is_regular_file(place, error)) continue;
        // Latin, Greek and arrows: names of modules and files are rarely written in anything else.
        static const ImWchar kRanges[] = {0x20, 0x17F, 0x370, 0x3FF, 0x2010, 0x2027, 0x2190, 0x21FF, 0};
        if (io.Fonts->AddFontFromFileTTF(place, size, nullptr, kRanges) == nullptr) continue;
        io.Fonts->AddFontFromFileTTF(place, std::round(size * kLarge));  // Latin-1
        return;
    }
    ImFontConfig config;
    config.SizePixels = std::round(13 * scale);
    io.Fonts->AddFontDefault(&config);
    config.SizePixels = std::round(13 * scale * kLarge);
    io.Fonts->AddFontDefault(&config);
}

}  // namespace shardscope::viewer
