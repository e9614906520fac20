// What the table and the JSON text of `distributed` (and `info`) say about hosts and about a job that failed.
// Internal to traces/report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "traces/analysis/communication/hosts.h"
#include "traces/analysis/communication/stopped.h"

namespace shardscope::traces::report {

// Formats a group's number as the other tables of the same output do.
using GroupText = std::function<std::string(std::int64_t group)>;

// Sections, each after an empty line; "" if there is nothing to report (one host, no failure).
std::string hosts_text(const analysis::HostsReport& report, std::size_t width);
std::string groups_text(const analysis::HostsReport& report, const GroupText& group, std::size_t width);
std::string stopped_text(const analysis::StopReport& report, std::size_t width);

nlohmann::ordered_json places_json(
    const std::vector<analysis::HostPlace>& hosts);                       // an array: hosts and their ranks
nlohmann::ordered_json hosts_json(const analysis::HostsReport& report);   // an object
nlohmann::ordered_json stopped_json(const analysis::StopReport& report);  // an object, or null

// "0-3 on node0; 4-7 on node1"; empty if no host is known.
std::string ranks_by_host(const std::vector<analysis::HostPlace>& hosts);

}  // namespace shardscope::traces::report
