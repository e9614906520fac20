// One line for each source.
#include "profiler/record/handlers.h"

namespace shardscope::profiler {

void add_handlers([[maybe_unused]] RecordConverter& converter, [[maybe_unused]] const ProcessFacts& process) {
    // converter.add_handler(RecordKind::x_first, RecordKind::x_last, make_x_handler(process));
}

}  // namespace shardscope::profiler
