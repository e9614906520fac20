// Turns options into a recording, and its failures into an exit status.
#include "profiler/record/record_command.h"

#include <exception>
#include <filesystem>

#include <unistd.h>

#include "profiler/record/command_line.h"
#include "profiler/record/launch.h"
#include "profiler/record/output_name.h"
#include "profiler/record/recording.h"
#include "profiler/record/wording.h"

namespace shardscope::profiler {

int record(const RecordOptions& options) {
    try {
        const std::string program = std::filesystem::path(options.command[0]).filename().string();
        const OutputName output = output_name(options.output, program, ::getpid(), environment_variable);
        return Recording(options, output).run();
    } catch (const LaunchError& error) {
        tell(error.what());
        return error.status;
    } catch (const std::exception& error) {
        tell(error.what());
        return kOwnFailure;
    }
}

}  // namespace shardscope::profiler
