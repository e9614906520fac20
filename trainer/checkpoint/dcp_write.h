// Writes checkpoints of torch.distributed.checkpoint (DCP): files of tensors as torch.save writes them, one
// after the other, and the pickle .metadata, which says which box of which tensor is where. Source: PyTorch's
// torch/distributed/checkpoint (metadata.py, filesystem.py).
//
// The names are those of {"model": model.state_dict(), "optim": get_optimizer_state_dict(...)}:
// model.PATH, optim.state.PATH.exp_avg, optim.param_groups.0.lr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/run_layout.h"
#include "trainer/checkpoint/save_plan.h"
#include "trainer/checkpoint/torch_file.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

// A piece of a parameter as boxes of its tensor, which torch.distributed.checkpoint wants: a row and a part
// of the next one are two. None has more than `most` elements.
std::vector<OwnedPiece> as_boxes(const OwnedPiece& piece, const ParameterShape& shape, std::int64_t most);

// The box that a result of as_boxes() is.
TensorBox box_of(const sharding::StatePiece& piece, const ParameterShape& shape);

// Pieces of consecutive rows with the same columns, one after the other in memory, that form one box: what a
// rank has of a weight that is cut by its columns.
using BoxPieces = std::vector<OwnedPiece>;
// Joins results of as_boxes(), which are in the order of elements, where this is so.
std::vector<BoxPieces> join_rows(std::vector<OwnedPiece> boxes, const ParameterShape& shape,
                                 std::int64_t most);
TensorBox box_of(const BoxPieces& pieces, const ParameterShape& shape);

std::string dcp_file_name(int place);                          // "__0_0.distcp"
inline constexpr const char* kReorderedFile = "__0_2.distcp";  // of tensors in another order than ours

// Writes .metadata and a file of the small things that belong to no rank: the updates that the optimizer
// has done, the batches that batch norms have counted, and the optimizer's settings. Syncs both.
// std::system_error.
struct DcpCounts {
    std::int64_t steps = 0;        // done
    std::int64_t updates = 0;      // of the parameters: without the steps that a loss scale skipped
    std::int64_t micro_steps = 1;  // of a step
};
void write_dcp_index(const SavePlan& plan, const job::OptimizerSection& optimizer,
                     const std::filesystem::path& folder, const DcpCounts& counts);

}  // namespace shardscope::trainer::checkpoint
