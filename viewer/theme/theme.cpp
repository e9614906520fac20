// See theme.h.
#include "viewer/theme/theme.h"

#include <array>

#include "traces/store/columns/names.h"

namespace shardscope::viewer::theme {
namespace {

constexpr Color kBlue = rgb(0x5BA8E6), kDeepBlue = rgb(0x2F77B8), kPaleBlue = rgb(0x9AD1F5);
constexpr Color kOrange = rgb(0xE8873A), kRust = rgb(0xC2552D), kSand = rgb(0xF2B872);
constexpr Color kGreen = rgb(0x35B48B), kYellow = rgb(0xEBD75E), kViolet = rgb(0x9A86D3);
constexpr Color kPink = rgb(0xD58BB5), kSteel = rgb(0x6F7F93), kGrey = rgb(0x4A5361);
constexpr Color kOlive = rgb(0x97872B), kMagenta = rgb(0xC04FA8), kTeal = rgb(0x4F8C96);

constexpr Palette kDark = {
    .ground = rgb(0x15181D),
    .surface = rgb(0x1B1F26),
    .raised = rgb(0x252B34),
    .hover = rgb(0x323A46),
    .line = rgb(0x343B47),
    .text = rgb(0xE3E7ED),
    .text_dim = rgb(0x949EAC),
    .accent = rgb(0x5BA8E6),
    .good = rgb(0x3DBE91),
    .bad = rgb(0xE8743B),
    .peak = rgb(0xF2F4F7),
    .code_keyword = rgb(0x7FB8F0),
    .code_name = rgb(0x5CC9A7),
    .code_text = rgb(0xE8A66A),
    .code_number = rgb(0xC3A6F0),
};
constexpr Palette kLight = {
    .ground = rgb(0xFAFBFC),
    .surface = rgb(0xF1F3F6),
    .raised = rgb(0xE4E8ED),
    .hover = rgb(0xD5DBE3),
    .line = rgb(0xCDD4DD),
    .text = rgb(0x1D232B),
    .text_dim = rgb(0x5A6573),
    .accent = rgb(0x1F6FB5),
    .good = rgb(0x1C7F5C),
    .bad = rgb(0xA63E08),
    .peak = rgb(0x11151A),
    .code_keyword = rgb(0x0B5CAD),
    .code_name = rgb(0x0F6E50),
    .code_text = rgb(0x9A4A08),
    .code_number = rgb(0x6A3FB0),
};
Appearance now = Appearance::dark;

template <class Enum>
std::size_t index(Enum value) {
    return static_cast<std::size_t>(value);
}

}  // namespace

Appearance appearance() {
    return now;
}
void set_appearance(Appearance appearance) {
    now = appearance;
}
const Palette& palette() {
    return now == Appearance::dark ? kDark : kLight;
}

Color kind_color(traces::store::DeviceKind kind) {
    static constexpr std::array<Color, traces::store::kDeviceKinds> kColors = {kBlue, kGreen, kYellow,
                                                                               kOrange};
    return kColors[index(kind)];
}

Color range_color(traces::store::RangeKind kind) {
    // Annotation, module, backward, step, data loader, communication, function, operation.
    static constexpr std::array<Color, traces::store::kRangeKinds> kColors = {
        kSteel, kViolet, kPink, kGrey, kOlive, kSand, rgb(0x556375), rgb(0x948872)};
    return kColors[index(kind)];
}

Color runtime_color() {
    return kTeal;
}

Color category_color(traces::schema::MemoryCategory category) {
    static constexpr std::array<Color, traces::schema::kMemoryCategories> kColors = {
        kDeepBlue, kPaleBlue, kRust, kSand, kViolet, kGreen, kYellow, kSteel};
    return kColors[index(category)];
}

Color time_category_color(traces::analysis::TimeCategory category) {
    static constexpr std::array<Color, traces::analysis::kTimeCategories> kColors = {
        kBlue, kGreen, kYellow, kOrange, kTeal, kOlive, kSteel, kGrey};
    return kColors[index(category)];
}

Color shard_color(traces::analysis::ShardState state) {
    if (state == traces::analysis::ShardState::sharded) return raised();
    // In the order of ShardState; the entry for sharded is unused.
    static constexpr std::array<Color, traces::analysis::kShardStates> kColors = {
        0, kOrange, kPaleBlue, kDeepBlue, kYellow, kViolet};
    return kColors[index(state)];
}

Color compute_color(traces::analysis::ComputeKind kind) {
    // Forward, backward, its parts for input and weights, overlapped.
    static constexpr std::array<Color, traces::analysis::kComputeKinds> kColors = {kBlue, kGreen, kYellow,
                                                                                   kViolet, kPink};
    return kColors[index(kind)];
}

Color idle_color(traces::analysis::IdleCause cause) {
    // Warm-up, peer, transfer, host, imbalance, drain.
    static constexpr std::array<Color, traces::analysis::kIdleCauses> kColors = {kGrey, kMagenta, kOrange,
                                                                                 kTeal, kRust,    kSteel};
    return kColors[index(cause)];
}

Color waiting_color() {
    return kMagenta;
}

Color wait_color(traces::analysis::WaitFor what) {
    using traces::analysis::WaitFor;
    switch (what) {
        case WaitFor::host:
            return runtime_color();
        case WaitFor::data:
            return time_category_color(traces::analysis::TimeCategory::data_loader);
        case WaitFor::device:
            return exposure_color(traces::analysis::ExposureCause::host_waited);
        case WaitFor::rank:
            return waiting_color();
        case WaitFor::collective:
            return kind_color(traces::store::DeviceKind::communication);
        case WaitFor::copy:
            return kind_color(traces::store::DeviceKind::memcpy);
        case WaitFor::kernel:
            return kind_color(traces::store::DeviceKind::kernel);
        case WaitFor::queue:
            return exposure_color(traces::analysis::ExposureCause::queued);
        case WaitFor::start:
            return kPaleBlue;
        case WaitFor::unknown:
            break;
    }
    return no_hue_color();
}

Color exposure_color(traces::analysis::ExposureCause cause) {
    using traces::analysis::ExposureCause;
    switch (cause) {
        case ExposureCause::late_rank:
            return waiting_color();
        case ExposureCause::queued:
            return rgb(0x7559B5);
        case ExposureCause::host_waited:
            return rgb(0x8FDCC0);
        case ExposureCause::issued_late:
            return runtime_color();
        case ExposureCause::too_long:
            return kRust;
        case ExposureCause::nothing:
            break;
    }
    return kYellow;
}

Color exposed_color() {
    return kRust;
}

Color overlapped_color() {
    return kDeepBlue;
}

Color transfer_color() {
    return rgb(0xB4E3A0);
}

// Avoids the hues of kinds of work and memory, so that a run is not mistaken for one. The first four are also
// distinct for colour-blind eyes.
Color run_color(int i) {
    static constexpr std::array<Color, 8> kColors = {rgb(0x1FC3CF), rgb(0xE4506B), rgb(0x9CCB3B),
                                                     rgb(0x5F63DD), rgb(0xF4A093), rgb(0x8B3F86),
                                                     rgb(0x8A5B3D), rgb(0xC4B4F0)};
    const int n = static_cast<int>(kColors.size());
    return kColors[static_cast<std::size_t>((i % n + n) % n)];
}

Color hue_color(int i) {
    static constexpr std::array<Color, 12> kColors = {
        rgb(0x2F77B8), rgb(0xF2B872), rgb(0x1F8A66), rgb(0xC9BBF0), rgb(0xC2552D), rgb(0x9AD1F5),
        rgb(0x7559B5), rgb(0xEBD75E), rgb(0xA8376F), rgb(0x8FDCC0), rgb(0x85771F), rgb(0xF0A8CC)};
    return kColors[static_cast<std::size_t>(i) % kColors.size()];
}

Color no_hue_color() {
    return kSteel;
}

}  // namespace shardscope::viewer::theme
