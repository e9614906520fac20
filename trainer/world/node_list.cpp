#include "trainer/world/node_list.h"

#include <charconv>

namespace shardscope::trainer::world {

namespace {

// Removes a number from the start of the text and returns it.
std::optional<int> take_number(std::string_view& text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool take(std::string_view& text, std::string_view what) {
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
}

}  // namespace

std::string first_node(std::string_view list) {
    std::string node;
    while (!list.empty() && list.front() != ',') {
        if (list.front() != '[') {
            if (list.front() == ']') return {};
            node += list.front();
            list.remove_prefix(1);
            continue;
        }
        // There may be several brackets ("rack[1-2]n[01-16]"): take the first entry of each.
        const std::size_t close = list.find(']');
        if (close == std::string_view::npos) return {};
        const std::string_view inside = list.substr(1, close - 1);
        const std::string_view first = inside.substr(0, inside.find_first_of(",-"));
        if (first.empty() || first.find_first_not_of("0123456789") != std::string_view::npos) return {};
        node += first;
        list.remove_prefix(close + 1);
    }
    return node;
}

std::optional<int> tasks_on_node(std::string_view list, int node) {
    while (true) {
        const std::optional<int> tasks = take_number(list);
        if (!tasks) return std::nullopt;
        int nodes = 1;
        if (take(list, "(x")) {
            const std::optional<int> times = take_number(list);
            if (!times || !take(list, ")")) return std::nullopt;
            nodes = *times;
        }
        if (node < nodes) return tasks;
        node -= nodes;
        if (!take(list, ",")) return std::nullopt;
    }
}

}  // namespace shardscope::trainer::world
