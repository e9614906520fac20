#include "traces/analysis/memory/allocator_settings.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int64_t kBytesOfMb = std::int64_t{1} << 20;
constexpr std::int64_t kLeastMb = 20, kMostMb = std::int64_t{1} << 24;  // 16 TiB
constexpr std::int64_t kMostDivisions = 64;

constexpr std::string_view kSettingKeys =
    "the keys are expandable_segments, max_split_size_mb, max_non_split_rounding_mb, "
    "roundup_power2_divisions, garbage_collection_threshold and empty_cache";

[[noreturn]] void refuse_setting(std::string_view item, const std::string& why) {
    throw std::invalid_argument(fmt::format("\"{}\": {}", item, why));
}

bool parse_switch(std::string_view item, std::string_view value) {
    if (value != "True" && value != "False") refuse_setting(item, "the value must be True or False");
    return value == "True";
}

std::int64_t parse_mb(std::string_view item, std::string_view value) {
    const auto mb = schema::number_of<std::int64_t>(value);
    if (!mb || *mb <= kLeastMb || *mb > kMostMb)
        refuse_setting(item,
                       fmt::format("the value must be a number of MiB from {} to {}", kLeastMb + 1, kMostMb));
    return *mb * kBytesOfMb;
}

std::int64_t parse_divisions(std::string_view item, std::string_view value) {
    const auto count = schema::number_of<std::int64_t>(value);
    const bool fits = count && *count >= 0 && *count <= kMostDivisions;
    if (!fits || (*count > 0 && !std::has_single_bit(static_cast<std::uint64_t>(*count))))
        refuse_setting(
            item, fmt::format("the number of divisions must be a power of two up to {}", kMostDivisions));
    return *count;
}

// "[256:1,512:2,>:4]": the divisions from that number of MiB on; the first entry also counts below it.
void parse_division_list(std::string_view item, std::string_view list, AllocatorSettings& settings) {
    std::optional<std::size_t> last;
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        const std::string_view entry = list.substr(0, comma);
        const std::size_t colon = entry.find(':');
        if (colon == std::string_view::npos)
            refuse_setting(item, "an entry of the list must be MiB:DIVISIONS");
        const std::string_view key = entry.substr(0, colon);
        const std::int64_t count = parse_divisions(item, entry.substr(colon + 1));
        if (key == ">") {
            for (std::size_t i = last ? *last + 1 : 0; i < settings.divisions.size(); ++i)
                settings.divisions[i] = count;
        } else {
            const auto mb = schema::number_of<std::uint64_t>(key);
            if (!mb || !std::has_single_bit(*mb) || *mb > 32768)
                refuse_setting(item, "the MiB of an entry must be a power of two up to 32768, or >");
            const auto place = static_cast<std::size_t>(std::countr_zero(*mb));
            if (last && place <= *last) refuse_setting(item, "the entries of the list must ascend");
            for (std::size_t i = last ? place : 0; i <= place; ++i) settings.divisions[i] = count;
            last = place;
        }
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
}

// The part of `text` before the next comma outside brackets, which is removed from it.
std::string_view next_item(std::string_view& text) {
    std::size_t end = 0;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end) {
        depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
    }
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return item;
}

void parse_item(std::string_view item, AllocatorSettings& settings) {
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos)
        refuse_setting(item, fmt::format("it is not KEY:VALUE; {}", kSettingKeys));
    const std::string_view key = item.substr(0, colon), value = item.substr(colon + 1);
    if (key == "expandable_segments") {
        settings.expandable_segments = parse_switch(item, value);
    } else if (key == "empty_cache") {
        settings.empty_cache = parse_switch(item, value);
    } else if (key == "max_split_size_mb") {
        settings.max_split = parse_mb(item, value);
    } else if (key == "max_non_split_rounding_mb") {
        settings.max_non_split_rounding = parse_mb(item, value);
    } else if (key == "garbage_collection_threshold") {
        const auto share = schema::number_of<double>(value);
        if (!share || !(*share > 0 && *share < 1)) refuse_setting(item, "the value must be between 0 and 1");
        settings.garbage_collection = *share;
    } else if (key == "roundup_power2_divisions" && value.starts_with('[') && value.ends_with(']')) {
        parse_division_list(item, value.substr(1, value.size() - 2), settings);
    } else if (key == "roundup_power2_divisions") {
        if (value.starts_with('[')) refuse_setting(item, "the list must end with ]");
        settings.divisions.fill(parse_divisions(item, value));
    } else {
        refuse_setting(item, fmt::format("it is not a key that changes what is reserved; {}", kSettingKeys));
    }
}

}  // namespace

std::int64_t AllocatorSettings::rounded(std::int64_t bytes) const {
    if (bytes <= AllocatorSizes::kMinBlock) return AllocatorSizes::kMinBlock;
    const auto size = static_cast<std::uint64_t>(bytes);
    const int log = static_cast<int>(std::bit_width(size)) - 1;
    const std::int64_t parts = divisions[static_cast<std::size_t>(std::clamp(log - 20, 0, 15))];
    const std::uint64_t step = parts > 1 && bytes > AllocatorSizes::kMinBlock * parts
                                   ? std::bit_floor(size) / static_cast<std::uint64_t>(parts)
                                   : static_cast<std::uint64_t>(AllocatorSizes::kMinBlock);
    return static_cast<std::int64_t>((size + step - 1) / step * step);
}

AllocatorSettings parse_allocator_settings(std::string_view text) {
    AllocatorSettings settings;
    if (text.empty()) throw std::invalid_argument(fmt::format("the settings are empty; {}", kSettingKeys));
    while (!text.empty()) parse_item(next_item(text), settings);
    return settings;
}

AllocatorSettings recorded_allocator_settings(const store::Trace& trace) {
    AllocatorSettings settings;
    const auto value = [&](const char* key) { return trace.config_value(fmt::format("allocator.{}", key)); };
    settings.expandable_segments = value("expandable_segments") == "true";
    // -1 stands for no limit.
    if (const auto bytes = schema::number_of<std::int64_t>(value("max_split_size")); bytes && *bytes > 0)
        settings.max_split = *bytes;
    if (const auto bytes = schema::number_of<std::int64_t>(value("max_non_split_rounding_size"));
        bytes && *bytes > 0 && *bytes <= kMostMb * kBytesOfMb)
        settings.max_non_split_rounding = *bytes;
    if (const auto share = schema::number_of<double>(value("garbage_collection_threshold"));
        share && *share > 0 && *share < 1)
        settings.garbage_collection = *share;
    for (std::size_t i = 0; i < settings.divisions.size(); ++i) {
        const std::string key = fmt::format("roundup_power2_divisions.{}", 1 << i);
        const auto count = schema::number_of<std::int64_t>(value(key.c_str()));
        if (count && *count > 0 && *count <= kMostDivisions &&
            std::has_single_bit(static_cast<std::uint64_t>(*count)))
            settings.divisions[i] = *count;
    }
    return settings;
}

std::string to_text(const AllocatorSettings& settings) {
    std::string text;
    const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ",") + item; };
    const AllocatorSettings defaults;
    if (settings.expandable_segments) add("expandable_segments:True");
    if (settings.max_split != defaults.max_split)
        add(fmt::format("max_split_size_mb:{}", settings.max_split / kBytesOfMb));
    if (settings.max_non_split_rounding != defaults.max_non_split_rounding)
        add(fmt::format("max_non_split_rounding_mb:{}", settings.max_non_split_rounding / kBytesOfMb));
    const auto& divisions = settings.divisions;
    if (std::all_of(divisions.begin(), divisions.end(), [&](auto d) { return d == divisions[0]; })) {
        if (divisions[0] > 0) add(fmt::format("roundup_power2_divisions:{}", divisions[0]));
    } else {
        std::string list;
        for (std::size_t i = 0; i < divisions.size(); ++i)
            list += fmt::format("{}{}:{}", i > 0 ? "," : "", 1 << i, divisions[i]);
        add(fmt::format("roundup_power2_divisions:[{}]", list));
    }
    if (settings.garbage_collection > 0)
        add(fmt::format("garbage_collection_threshold:{}", settings.garbage_collection));
    if (settings.empty_cache) add("empty_cache:True");
    return text.empty() ? "defaults" : text;
}

}  // namespace shardscope::traces::analysis
