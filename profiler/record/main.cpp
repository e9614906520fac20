// shardscope-record: reads its command line, records, and exits as the command did.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "profiler/record/command_line.h"
#include "profiler/record/record_command.h"
#include "profiler/sampler/patient_thread.h"
#include "traces/report/text_table.h"

int main(int argc, char** argv) try {
    using namespace shardscope::profiler;
    const CommandLine line = parse_command_line(argc, argv);
    if (line.status) return *line.status;
    const int status = record(line.options);
    if (PatientThread::any_left_behind()) std::_Exit(status);
    return status;
} catch (const std::exception& error) {
    std::fprintf(stderr, "shardscope-record: %s\n",
                 shardscope::traces::report::printable(error.what()).c_str());
    return shardscope::profiler::kOwnFailure;
}
