// See arrangement.h.
#include "viewer/model/arrangement.h"

#include <algorithm>
#include <iterator>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "viewer/model/fields.h"

namespace shardscope::viewer::model {

void RowArrangement::toggle_collapsed(const std::string& key) {
    if (collapsed.erase(key) == 0) collapsed.insert(key);
}

bool RowArrangement::is_pinned(std::string_view key) const {
    return std::find(pinned.begin(), pinned.end(), key) != pinned.end();
}

void RowArrangement::toggle_pinned(const std::string& key) {
    if (std::erase(pinned, key) == 0) pinned.push_back(key);
}

void RowArrangement::move(const std::string& key, const std::string& before,
                          const std::vector<std::string>& siblings) {
    if (key == before) return;
    std::vector<std::string> wanted;
    for (const std::string& sibling : siblings) {
        if (sibling == before) wanted.push_back(key);
        if (sibling != key) wanted.push_back(sibling);
    }
    if (std::find(wanted.begin(), wanted.end(), key) == wanted.end()) wanted.push_back(key);
    std::erase_if(order, [&](const std::string& k) {
        return std::find(wanted.begin(), wanted.end(), k) != wanted.end();
    });
    order.insert(order.end(), wanted.begin(), wanted.end());
}

void RowArrangement::step(const std::string& key, int by, const std::vector<std::string>& siblings) {
    const auto at = std::find(siblings.begin(), siblings.end(), key);
    if (at == siblings.end() || (by < 0 && at == siblings.begin())) return;
    if (by < 0) return move(key, *std::prev(at), siblings);
    if (std::next(at) == siblings.end()) return;
    const auto after = std::next(at, 2);
    move(key, after == siblings.end() ? std::string() : *after, siblings);
}

std::string to_json(const RowArrangement& a) {
    return fields_text(a);
}

RowArrangement arrangement_from_json(std::string_view text) {
    return fields_from<RowArrangement>(text);
}

bool matches_filter(std::string_view text, std::string_view filter) {
    while (!filter.empty()) {
        const std::size_t space = filter.find(' ');
        const std::string_view word = filter.substr(0, space);
        filter = space == std::string_view::npos ? std::string_view() : filter.substr(space + 1);
        if (!traces::schema::contains_but_for_case(text, word)) return false;
    }
    return true;
}

}  // namespace shardscope::viewer::model
