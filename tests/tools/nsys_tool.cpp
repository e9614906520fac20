#include "tests/tools/nsys_tool.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "tests/tools/run_command.h"

namespace shardscope::tools {

namespace {

// A line of CSV; commas within quotes are text.
std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            cells.emplace_back();
        } else {
            cells.back() += c;
        }
    }
    return cells;
}

}  // namespace

std::optional<NsysTool> NsysTool::find() {
    NsysTool tool;
    const char* given = std::getenv("NSYS");
    tool.program_ = given != nullptr ? given : "nsys";
    try {
        const Outcome version = run_command({tool.program_, "--version"});
        if (version.status != 0) return std::nullopt;
        tool.version_ = version.out.substr(0, version.out.find('\n'));
        const Outcome help = run_command({tool.program_, "stats", "--help-reports"});
        std::istringstream lines(help.out);
        // "  name[:option] -- what it is"
        for (std::string line; std::getline(lines, line);) {
            const auto name = line.find_first_not_of(' ');
            if (name == std::string::npos || line.find(" -- ") == std::string::npos) continue;
            tool.reports_.insert(line.substr(name, line.find_first_of(" [:", name) - name));
        }
    } catch (const std::system_error&) {
        return std::nullopt;
    }
    if (tool.reports_.empty()) return std::nullopt;
    return tool;
}

NsysTool::Answer NsysTool::report(const std::string& report, const std::string& trace) const {
    const Outcome outcome =
        run_command({program_, "stats", "--report", report, "--format", "csv", "--output", "-", trace});
    Answer answer;
    const std::string all = outcome.out + outcome.err;
    for (const char* bad : {"ERROR", "SKIPPED", "Traceback", "rror:"}) {
        if (const auto at = all.find(bad); at != std::string::npos && answer.complaint.empty()) {
            answer.complaint = all.substr(at, all.find('\n', at) - at);
        }
    }
    if (outcome.status != 0 && answer.complaint.empty()) {
        answer.complaint = "exit status " + std::to_string(outcome.status);
    }
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.starts_with("Processing ") || line.find(',') == std::string::npos) continue;
        if (answer.columns.empty()) {
            answer.columns = cells_of(line);
        } else {
            answer.rows.push_back(cells_of(line));
        }
    }
    return answer;
}

std::string NsysTool::Answer::cell(const std::string& name, const std::string& column) const {
    const auto at = std::find(columns.begin(), columns.end(), column);
    if (at == columns.end()) return "";
    for (const std::vector<std::string>& row : rows) {
        const auto index = static_cast<std::size_t>(at - columns.begin());
        if (!row.empty() && row.back() == name && index < row.size()) return row[index];
    }
    return "";
}

}  // namespace shardscope::tools
