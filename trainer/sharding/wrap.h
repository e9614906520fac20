// Wrap policies: which modules become FSDP units. The recursion is PyTorch's (fsdp/wrap.py): bottom up, a
// policy judges a module by those of its parameters that no inner unit has taken; the root is wrapped last.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::sharding {

// The nn.Module wrapper of one unit: calls the engine's hooks around the inner module. See fsdp.h.
class Fsdp;

class FullyShardedDataParallel final : public model::Module {
  public:
    explicit FullyShardedDataParallel(std::unique_ptr<model::Module> inner);
    plan::Tensor forward(model::Graph& graph, const plan::Tensor& input) override;
    bool is_wrapper() const override { return true; }
    model::Module& inner() { return child(0); }
    const model::Module& inner() const { return *children().front(); }

    Fsdp* engine = nullptr;  // set by the engine
    std::vector<int> units;  // one, or of a pipeline one for each stage; none if no parameter is left for it
    bool is_root = false;
};

// Wraps by the job's policy, then wraps the root. Throws JobError if a policy by class matches nothing.
std::unique_ptr<model::Module> apply_wrap(std::unique_ptr<model::Module> root, const job::Job& job);

// Every wrapper with its parameters, in the order of the tree: a parameter belongs to the nearest wrapper
// that surrounds all modules that use it. The stages of a pipeline are gathered at different times: a wrapper
// around several has a unit for each, and one for what the first and the last stage share.
struct WrappedModule {
    FullyShardedDataParallel* wrapper = nullptr;
    std::vector<const model::Parameter*> parameters;
    std::string name;
};
std::vector<WrappedModule> parameters_by_wrapper(const model::ModuleTree& tree);

// The unit whose forward ends last, except for the root's; -1 if there is none.
int last_to_end(const model::Module& root);

}  // namespace shardscope::trainer::sharding
