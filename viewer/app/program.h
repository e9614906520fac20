// The state of the running viewer that is not a panel's: which panel shows, which windows are open, whether
// to quit. Actions change it, the shell draws it. Frame thread only. No Dear ImGui.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "viewer/app/session.h"
#include "viewer/panels/panel.h"

namespace shardscope::viewer {

struct Program {
    Session session;
    std::vector<std::unique_ptr<Panel>> panels;  // in the order of their tabs
    std::size_t panel = 0;                       // the one on show
    bool help = false;                           // the help window
    bool choose_file = false;                    // the file window
    bool quit = false;

    Panel& shown() { return *panels[panel]; }
    bool show(std::string_view name) {
        for (std::size_t i = 0; i < panels.size(); ++i) {
            if (panels[i]->name() != name) continue;
            panel = i;
            return true;
        }
        return false;
    }
};

}  // namespace shardscope::viewer
