// See style.h.
#include "viewer/app/style.h"

#include <array>
#include <cmath>
#include <filesystem>

#include <imgui.h>

#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

constexpr float kLarge = 1.9F;  // relative size of the second font, for a page's most important figure

void set(ImGuiCol what, theme::Color color, float alpha = 1) {
    ImVec4 value = ImGui::ColorConvertU32ToFloat4(color);
    value.w *= alpha;
    ImGui::GetStyle().Colors[what] = value;
}

void set_colors() {
    if (theme::appearance() == theme::Appearance::dark) {
        ImGui::StyleColorsDark();
    } else {
        ImGui::StyleColorsLight();
    }
    set(ImGuiCol_Text, theme::text());
    set(ImGuiCol_TextDisabled, theme::text_dim());
    set(ImGuiCol_WindowBg, theme::ground());
    set(ImGuiCol_ChildBg, theme::ground(), 0);
    set(ImGuiCol_PopupBg, theme::surface(), 0.98F);
    set(ImGuiCol_Border, theme::line());
    set(ImGuiCol_FrameBg, theme::raised());
    set(ImGuiCol_FrameBgHovered, theme::hover());
    set(ImGuiCol_FrameBgActive, theme::hover());
    set(ImGuiCol_TitleBg, theme::surface());
    set(ImGuiCol_TitleBgActive, theme::raised());
    set(ImGuiCol_MenuBarBg, theme::surface());
    set(ImGuiCol_ScrollbarBg, theme::ground(), 0.6F);
    set(ImGuiCol_ScrollbarGrab, theme::hover());
    set(ImGuiCol_ScrollbarGrabHovered, theme::line());
    set(ImGuiCol_ScrollbarGrabActive, theme::accent());
    set(ImGuiCol_CheckMark, theme::accent());
    set(ImGuiCol_SliderGrab, theme::accent());
    set(ImGuiCol_SliderGrabActive, theme::accent());
    set(ImGuiCol_Button, theme::raised());
    set(ImGuiCol_ButtonHovered, theme::hover());
    set(ImGuiCol_ButtonActive, theme::accent(), 0.6F);
    set(ImGuiCol_Header, theme::accent(), 0.25F);
    set(ImGuiCol_HeaderHovered, theme::accent(), 0.32F);
    set(ImGuiCol_HeaderActive, theme::accent(), 0.42F);
    set(ImGuiCol_Separator, theme::line());
    set(ImGuiCol_Tab, theme::surface());
    set(ImGuiCol_TabHovered, theme::hover());
    set(ImGuiCol_TabActive, theme::raised());
    set(ImGuiCol_TabUnfocused, theme::surface());
    set(ImGuiCol_TabUnfocusedActive, theme::raised());
    set(ImGuiCol_PlotHistogram, theme::accent());
    set(ImGuiCol_TableHeaderBg, theme::raised());
    set(ImGuiCol_TableBorderStrong, theme::line());
    set(ImGuiCol_TableBorderLight, theme::line(), 0.6F);
    set(ImGuiCol_TableRowBg, theme::ground(), 0);
    set(ImGuiCol_TableRowBgAlt, theme::text(), 0.025F);
    set(ImGuiCol_TextSelectedBg, theme::accent(), 0.35F);
    set(ImGuiCol_NavHighlight, theme::accent());
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

}  // namespace shardscope::viewer::app
