// The keys that a user has given to actions instead of those of the action table. No Dear ImGui. Frame thread
// only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/model/keys.h"

namespace shardscope::viewer::app {

struct Action;
struct Program;

// By the action's id; an empty list: none of its keys.
using ChangedKeys = std::map<std::string, std::vector<model::Chord>, std::less<>>;

const std::vector<model::Chord>& keys_of(const Action& action, const Program& program);
std::string keys_text(const Action& action, const Program& program);  // "A, Left"; empty: it has no key

// Gives an action one key instead of its own, or none (null). Actions that are available at the same time and
// have this key lose it. Returns what has changed, as a sentence.
std::string change_key(const Action& action, const model::Chord* chord, Program& program);

// As in the saved state: {"zoom_in": ["W"]}. What names no action or no key is ignored.
ChangedKeys changed_keys(const std::map<std::string, std::vector<std::string>>& saved);
std::map<std::string, std::vector<std::string>> saved_keys(const ChangedKeys& keys);

}  // namespace shardscope::viewer::app
