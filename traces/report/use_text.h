// What a job did, in words: shared by the table and the pages. Internal to traces/report.
#pragma once

#include <string>

namespace shardscope::traces::analysis {
struct DeviceUse;
struct JobUse;
struct UtilizationReport;
}  // namespace shardscope::traces::analysis

namespace shardscope::traces::report {

// "4 devices on 1 host in 10.0 s: utilization 20.0 %, idle 75.0 %; 3 of them unused. Energy 1,500 J, ..."
std::string job_sentence(const analysis::UtilizationReport& report);

std::string duration_text(double seconds);           // "0.250 s", "12.5 s", "3 min 20 s", "2 h 5 min"
std::string energy_text(double joules);              // "1,500 J", "1.25 kWh"
std::string cost_text(const analysis::JobUse& job);  // "0.04"; "-" if no price is known

}  // namespace shardscope::traces::report
