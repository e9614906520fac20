// See changed_keys.h.
#include "viewer/app/changed_keys.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "viewer/app/actions.h"
#include "viewer/app/program.h"

namespace shardscope::viewer::app {
namespace {

bool may_meet(const Action& a, const Action& b) {
    return a.panel == b.panel || a.panel.empty() || b.panel.empty();
}

}  // namespace

const std::vector<model::Chord>& keys_of(const Action& action, const Program& program) {
    const auto changed = program.keys.find(action.id);
    return changed == program.keys.end() ? action.keys : changed->second;
}

std::string keys_text(const Action& action, const Program& program) {
    std::string text;
    for (const model::Chord& chord : keys_of(action, program))
        text += (text.empty() ? "" : ", ") + chord_text(chord);
    return text;
}

std::string change_key(const Action& action, const model::Chord* chord, Program& program) {
    if (chord == nullptr) {
        program.keys[std::string(action.id)] = {};
        return fmt::format("\"{}\" has no key now.", action.title);
    }
    std::string losers;
    for (const Action& other : actions()) {
        std::vector<model::Chord> keys = keys_of(other, program);
        if (other.id == action.id || !may_meet(action, other) || std::erase(keys, *chord) == 0) continue;
        program.keys[std::string(other.id)] = keys;
        losers += fmt::format(" \"{}\" has lost it.", other.title);
    }
    program.keys[std::string(action.id)] = {*chord};
    return fmt::format("{} is \"{}\" now.{}", chord_text(*chord), action.title, losers);
}

ChangedKeys changed_keys(const std::map<std::string, std::vector<std::string>>& saved) {
    ChangedKeys keys;
    for (const auto& [id, names] : saved) {
        const auto is_action = [&id = id](const Action& action) { return action.id == id; };
        if (std::none_of(actions().begin(), actions().end(), is_action)) continue;
        std::vector<model::Chord>& own = keys[id];
        for (const std::string& name : names)
            if (const std::optional<model::Chord> chord = model::parse_chord(name)) own.push_back(*chord);
    }
    return keys;
}

std::map<std::string, std::vector<std::string>> saved_keys(const ChangedKeys& keys) {
    std::map<std::string, std::vector<std::string>> saved;
    for (const auto& [id, chords] : keys) {
        std::vector<std::string>& names = saved[id];
        for (const model::Chord& chord : chords) names.push_back(chord_text(chord));
    }
    return saved;
}

}  // namespace shardscope::viewer::app
