// See program.h.
#include "viewer/app/program.h"

#include "traces/report/text_table.h"
#include "viewer/app/session_file.h"

namespace shardscope::viewer::app {

void Program::open(const std::string& path) {
    if (path.ends_with(kSessionEnding)) {
        if (in_second) {
            wanted_session = path;
        } else {
            open_session(*this, path);
        }
        return;
    }
    session.open_file(path);
    session.set_active(session.open.size() - 1);
    remember(path);
}

void Program::say_problem(const std::string& sentence) {
    problems.push_back(traces::report::printable(sentence));
}

void Program::show_contents() {
    if (!contents || session.loading()) return;
    for (const auto& each : panels) each->show_content((*contents)[std::string(each->name())], session);
    contents.reset();
}

}  // namespace shardscope::viewer::app
