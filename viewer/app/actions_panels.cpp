// The actions of panels other than the timeline (action_parts.h): each is done by the panel's act().
#include "viewer/app/action_parts.h"

namespace shardscope::viewer {

std::vector<Action> panel_actions() {
    constexpr bool kRepeats = true;
    return {
        {"shard_next",
         "Shard map",
         "Next change of state",
         {{Key::right}},
         "shardmap",
         kRepeats,
         to_panel("shard_next")},
        {"shard_previous",
         "Shard map",
         "Change of state before",
         {{Key::left}},
         "shardmap",
         kRepeats,
         to_panel("shard_previous")},
        {"shard_play",
         "Shard map",
         "Play change by change",
         {{Key::space}},
         "shardmap",
         false,
         to_panel("shard_play")},
    };
}

}  // namespace shardscope::viewer
