// See theme.h.
#include "viewer/app/theme.h"

#include <array>

namespace shardscope::viewer {
namespace {

constexpr Color kBlue = rgb(0x5BA8E6), kDeepBlue = rgb(0x2F77B8), kPaleBlue = rgb(0x9AD1F5);
constexpr Color kOrange = rgb(0xE8873A), kRust = rgb(0xC2552D), kSand = rgb(0xF2B872);
constexpr Color kGreen = rgb(0x35B48B), kYellow = rgb(0xEBD75E), kViolet = rgb(0x9A86D3);
constexpr Color kPink = rgb(0xD58BB5), kSteel = rgb(0x6F7F93), kGrey = rgb(0x4A5361);

template <class Enum>
std::size_t index(Enum value) {
    return static_cast<std::size_t>(value);
}

}  // namespace

Color kind_color(traces::DeviceKind kind) {
    static constexpr std::array<Color, traces::kDeviceKinds> kColors = {kBlue, kGreen, kYellow, kOrange};
    return kColors[index(kind)];
}

Color range_color(traces::RangeKind kind) {
    switch (kind) {
        case traces::RangeKind::module:
            return kViolet;
        case traces::RangeKind::backward:
            return kPink;
        case traces::RangeKind::step:
            return kGrey;
        case traces::RangeKind::data_loader:
            return kYellow;
        case traces::RangeKind::communication:
            return kSand;
        case traces::RangeKind::function:
            return rgb(0x556375);
        case traces::RangeKind::annotation:
        case traces::RangeKind::operation:
            break;
    }
    return kSteel;
}

Color runtime_color() {
    return rgb(0x4F8C96);
}

Color category_color(traces::MemoryCategory category) {
    static constexpr std::array<Color, traces::kMemoryCategories> kColors = {
        kDeepBlue, kPaleBlue, kRust, kSand, kViolet, kGreen, kYellow, kSteel};
    return kColors[index(category)];
}

Color time_category_color(traces::TimeCategory category) {
    static constexpr std::array<Color, traces::kTimeCategories> kColors = {
        kBlue, kGreen, kYellow, kOrange, rgb(0x4F8C96), kPink, kSteel, kGrey};
    return kColors[index(category)];
}

Color run_color(int i) {
    static constexpr std::array<Color, 8> kColors = {kBlue,   kOrange, kGreen, kViolet,
                                                     kYellow, kPink,   kRust,  kPaleBlue};
    const int n = static_cast<int>(kColors.size());
    return kColors[static_cast<std::size_t>((i % n + n) % n)];
}

}  // namespace shardscope::viewer
