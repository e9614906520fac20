#include "trainer/checkpoint/run_layout.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

RunLayout layout_of(const Program& program) {
    RunLayout layout;
    layout.mesh = program.mesh();
    for (const Parameter* parameter : program.modules().parameters) {
        layout.parameters.push_back({parameter->path, parameter->rows, parameter->width});
    }
    for (int place = 0; place < layout.mesh.shard; ++place) {
        layout.places.push_back(program.optimizer().pieces(place));
    }
    return layout;
}

}  // namespace shardscope::trainer
