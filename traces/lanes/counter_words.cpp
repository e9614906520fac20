// See counter_words.h.
#include "traces/lanes/counter_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace shardscope::traces::lanes {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// The longer ending first, where one ends in the other.
constexpr std::array<Pair, 10> kUnits{{{"_bytes_per_second", "bytes/s"},
                                       {"_bytes", "bytes"},
                                       {"_percent", "%"},
                                       {"_watts", "W"},
                                       {"_joules", "J"},
                                       {"_mhz", "MHz"},
                                       {"_celsius", "°C"},
                                       {"_cores", "cores"},
                                       {"_ns", "ns"},
                                       {"_bits", "bits"}}};

constexpr std::array<Pair, 9> kWords{{{"gpu", "GPU"},
                                      {"cpu", "CPU"},
                                      {"sm", "SM"},
                                      {"nvlink", "NVLink"},
                                      {"pcie", "PCIe"},
                                      {"infiniband", "InfiniBand"},
                                      {"ethernet", "Ethernet"},
                                      {"cgroup", "cgroup"},
                                      {"nccl", "NCCL"}}};

std::string_view known_word(std::string_view word) {
    const auto* known =
        std::find_if(kWords.begin(), kWords.end(), [word](const Pair& pair) { return pair.first == word; });
    return known == kWords.end() ? word : known->second;
}

bool is_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string_view> words_of(std::string_view name) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at <= name.size();) {
        const std::size_t end = std::min(name.find('_', at), name.size());
        if (end > at) words.push_back(name.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

}  // namespace

CounterWords counter_words(std::string_view name, int device) {
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(), [name](const Pair& pair) {
        return name.size() > pair.first.size() && name.ends_with(pair.first);
    });
    if (unit == kUnits.end()) return {std::string(name), {}};
    const std::vector<std::string_view> words = words_of(name.substr(0, name.size() - unit->first.size()));
    if (words.empty()) return {std::string(name), unit->second};
    std::string label;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) label += ' ';
        std::string_view number;
        std::string_view word = words[i];
        if (i == 0 && word.starts_with("gpu") && is_digits(word.substr(3))) {
            number = word.substr(3);
            word = word.substr(0, 3);
        }
        std::string shown(known_word(word));
        if (i == 0 && shown == word && shown != "cgroup")
            shown[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(shown[0])));
        label += shown;
        const bool numbered = word == "gpu" || word == "infiniband" || word == "ethernet";
        if (i == 0 && numbered && device >= 0) {
            label += ' ' + std::to_string(device);
        } else if (!number.empty()) {
            label += ' ' + std::string(number);
        }
    }
    return {std::move(label), unit->second};
}

}  // namespace shardscope::traces::lanes
