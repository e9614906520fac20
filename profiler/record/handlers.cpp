// One line per source of records.
#include "profiler/record/handlers.h"

namespace shardscope::profiler {

void add_handlers(RecordConverter& converter, const ProcessFacts& process) {
    converter.add_handler(RecordKind::cuda_first, RecordKind::cuda_last, make_cuda_handler(process));
    converter.add_handler(RecordKind::nccl_first, RecordKind::nccl_last, make_nccl_handler());
}

}  // namespace shardscope::profiler
