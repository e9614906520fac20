#include "traces/import/pytorch_memory/frames.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace shardscope::traces::importer {
namespace {

// A stack of PyTorch has some hundred frames; a file with more is damaged or hostile.
constexpr std::size_t kMostFrames = 4096;
constexpr std::size_t kMostText = std::size_t{1} << 20;

}  // namespace

std::size_t Frames::HashOfRefs::operator()(const std::vector<ValueRef>& refs) const {
    std::uint64_t hash = refs.size();
    for (const ValueRef ref : refs) {
        hash = (hash ^ static_cast<std::uint64_t>(ref)) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
}

schema::StringId Frames::stack(const Value& frames) {
    if (!frames.is_list() || frames.size() == 0) return schema::StringId::empty;
    if (const auto known = by_list_.find(frames.ref()); known != by_list_.end()) return known->second;
    std::vector<ValueRef> refs;
    refs.reserve(std::min(frames.size(), kMostFrames));
    for (std::size_t i = 0; i < frames.size() && i < kMostFrames; ++i) refs.push_back(frames[i].ref());
    const auto [known, added] = by_frames_.try_emplace(std::move(refs), schema::StringId::empty);
    if (added) {
        std::string text;
        for (std::size_t i = 0; i < frames.size() && i < kMostFrames && text.size() < kMostText; ++i) {
            const std::string& one = line(frames[i]);
            if (one.empty()) continue;
            if (!text.empty()) text += '\n';
            text += one;
        }
        known->second = sink_.intern(text);
        texts_.try_emplace(known->second, std::move(text));
    }
    by_list_.emplace(frames.ref(), known->second);
    return known->second;
}

std::string_view Frames::text(schema::StringId stack) const {
    const auto known = texts_.find(stack);
    return known == texts_.end() ? std::string_view() : std::string_view(known->second);
}

const std::string& Frames::line(const Value& frame) {
    const auto [known, added] = lines_.try_emplace(frame.ref());
    if (!added) return known->second;
    std::string& text = known->second;
    const std::string_view name = frame["name"].text(), file = frame["filename"].text();
    // Frames of libraries without debug information have the file "??" and line 0.
    if (const auto number = frame["line"].integer();
        !file.empty() && file != "??" && number.value_or(0) > 0) {
        text = fmt::format("{}:{} {}", file, *number, name);
    } else if (!file.empty() && file != "??") {
        text = fmt::format("{} {}", file, name);
    } else {
        text = name;
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace shardscope::traces::importer
