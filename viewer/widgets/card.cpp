// See card.h.
#include "viewer/widgets/card.h"

#include <imgui.h>

#include "viewer/draw/items.h"

namespace shardscope::viewer::widgets {

void draw_card(std::string_view item, std::string_view text, theme::Color edge,
               const std::function<void(float right)>& contents) {
    const float font = ImGui::GetFontSize(), pad = font * 0.8F;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    // The background is drawn once the card's height is known, below its contents.
    draw->ChannelsSplit(2);
    draw->ChannelsSetCurrent(1);
    ImGui::PushID(item.data(), item.data() + item.size());
    ImGui::SetCursorScreenPos({at.x + pad * 1.4F, at.y + pad * 0.8F});
    ImGui::BeginGroup();
    contents(at.x + width - pad);
    ImGui::EndGroup();
    ImGui::PopID();
    const float bottom = ImGui::GetItemRectMax().y + pad * 0.8F;
    draw->ChannelsSetCurrent(0);
    draw->AddRectFilled(at, {at.x + width, bottom}, theme::surface(), font * 0.3F);
    draw->AddRectFilled(at, {at.x + font * 0.3F, bottom}, edge, font * 0.15F);
    draw->ChannelsMerge();
    draw::items::place(item, at, {at.x + width, bottom}, text);
    ImGui::SetCursorScreenPos({at.x, bottom + font * 0.6F});
    ImGui::Dummy({1, 0});
}

}  // namespace shardscope::viewer::widgets
