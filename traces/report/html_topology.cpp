// Topology in the HTML report: the picture of each host's links and peer access, and what ranks sent each
// other.
#include <string>

#include "traces/analysis/topology/pair_traffic.h"
#include "traces/report/html_parts.h"
#include "traces/report/topology.h"

namespace shardscope::traces::report {

std::string html_topology(const ReportedRun& run, const Redactor& redact) {
    if (run.topology.hosts.empty()) return {};
    analysis::TopologyReport shown = run.topology;
    for (analysis::HostTopology& host : shown.hosts) host.host = redact.plain(host.host);
    std::string html = "<div class=\"scroll\">" + topology_svg(shown) + "</div>\n";
    if (!shown.pairs.empty()) {
        html += folded("From rank to rank",
                       html_of(analysis::result_table(analysis::pair_traffic_fields(), shown.pairs), redact));
    }
    for (const std::string& note : shown.notes) html += "<p class=\"dim\">" + redact.text(note) + "</p>\n";
    return html;
}

}  // namespace shardscope::traces::report
