// Lines of PyTorch code for users to paste: they run unchanged, against stubs of PyTorch's names.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_models.h"
#include "trainer/lift/pytorch_lines.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const Lifted& recorded() {
    static const Lifted own = lifted(fully_shard_json({}));
    return own;
}

std::vector<PytorchLines> lines_under(const std::vector<job::Override>& changes) {
    return pytorch_lines(recorded(), job_of(recorded(), changes));
}

const std::vector<std::vector<job::Override>> kSettings = {
    {},
    {{"fsdp.wrap", "root"}},
    {{"fsdp.wrap", "module:Linear"}},
    {{"fsdp.wrap", "module:Block,Linear,ReLU"}},
    {{"fsdp.wrap", "size:60000"}, {"fsdp.sharding_strategy", "SHARD_GRAD_OP"}},
    {{"fsdp.wrap", "every:2,Block,Linear"}},
    {{"fsdp.wrap", "module:Block,Linear"}, {"fsdp.exclude", "every:2,Linear"}},
    {{"fsdp.wrap", "module:Block"}, {"fsdp.unit", "every:2,Block=false"}},
    {{"fsdp.layout", "fsdp1"}, {"fsdp.wrap", "every:2,Block"}, {"fsdp.unit", "module:Block=false"}},
    {{"fsdp.wrap", "path:blocks.*,head"}, {"fsdp.unit", "path:blocks.0=false"}},
    {{"fsdp.wrap", "size:60000"}, {"fsdp.exclude", "module:Block"}, {"fsdp.unit", "every:2,Linear=false"}},
    {{"fsdp.reshard_after_forward", "true"}},
    {{"fsdp.reshard_after_forward", "false"}, {"fsdp.wrap", "module:Block"}},
    {{"fsdp.cpu_offload", "true"}, {"precision.param", "bf16"}},
    {{"fsdp.layout", "fsdp1"}, {"fsdp.backward_prefetch", "NONE"}, {"fsdp.wrap", "module:Linear"}},
    {{"fsdp.layout", "fsdp1"},
     {"fsdp.backward_prefetch", "BACKWARD_POST"},
     {"fsdp.forward_prefetch", "true"}},
    {{"run.ranks", "4"}, {"fsdp.sharding_strategy", "HYBRID_SHARD"}, {"fsdp.shard_group", "2"}},
    {{"parallel.mode", "ddp"}, {"ddp.bucket_cap_mb", "10"}},
};

// Only PyTorch's names and signatures: an import of another name, an unknown argument and a name that no line
// imports are errors.
constexpr std::string_view kStubs = R"(
import sys, types
def stub(path, **names):
    module = types.ModuleType(path)
    module.__dict__.update(names)
    sys.modules[path] = module
    if "." in path: setattr(sys.modules[path.rsplit(".", 1)[0]], path.rsplit(".", 1)[1], module)
class Module:
    def __init__(self, *inside): self.inside = inside
    def children(self): return iter(self.inside)
    def modules(self):
        yield self
        for child in self.inside: yield from child.modules()
    def named_modules(self, name=""):
        yield name, self
        for i, child in enumerate(self.inside): yield from child.named_modules((name and name + ".") + str(i))
    def parameters(self, recurse=True): return iter(())
kinds = {name: type(name, (Module,), {}) for name in ("Linear", "ReLU", "ModuleList", "ModuleDict")}
Block = type("Block", (Module,), {})
sharded = []
def fully_shard(module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None, mp_policy=None,
                offload_policy=None, ignored_params=None): sharded.append(module)
class FSDP(Module):
    def __init__(self, module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None,
                 backward_prefetch=0, mixed_precision=None, ignored_modules=None, param_init_fn=None, device_id=None,
                 sync_module_states=False, forward_prefetch=False, limit_all_gathers=True, use_orig_params=False,
                 ignored_states=None, device_mesh=None): super().__init__(module)
class DDP(Module):
    def __init__(self, module, bucket_cap_mb=None, gradient_as_bucket_view=False): super().__init__(module)
class Names:
    def __init__(self, *names): self.__dict__.update({name: name for name in names})
class MixedPrecisionPolicy:
    def __init__(self, param_dtype=None, reduce_dtype=None, output_dtype=None, cast_forward_inputs=True): pass
class MixedPrecision:
    def __init__(self, param_dtype=None, reduce_dtype=None, buffer_dtype=None): pass
class CPUOffloadPolicy:
    def __init__(self, pin_memory=True): pass
class CPUOffload:
    def __init__(self, offload_params=False): pass
class ModuleWrapPolicy:
    def __init__(self, module_classes): assert all(issubclass(c, Module) for c in module_classes)
class CustomPolicy:
    def __init__(self, lambda_fn):
        for module in model_of_policy.modules(): assert lambda_fn(module) in (True, False) or "sharding_strategy" in lambda_fn(module)
def size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=0): pass
def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None): assert len(mesh_shape) == len(mesh_dim_names)
stub("torch", bfloat16="bfloat16", float32="float32")
stub("torch.nn", Module=Module, **kinds)
stub("torch.nn.parallel", DistributedDataParallel=DDP)
stub("torch.distributed")
stub("torch.distributed.device_mesh", init_device_mesh=init_device_mesh)
stub("torch.distributed.fsdp", fully_shard=fully_shard, MixedPrecisionPolicy=MixedPrecisionPolicy,
     CPUOffloadPolicy=CPUOffloadPolicy, FullyShardedDataParallel=FSDP, MixedPrecision=MixedPrecision,
     CPUOffload=CPUOffload,
     ShardingStrategy=Names("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"),
     BackwardPrefetch=Names("BACKWARD_PRE", "BACKWARD_POST"))
stub("torch.distributed.fsdp.wrap", ModuleWrapPolicy=ModuleWrapPolicy, CustomPolicy=CustomPolicy,
     size_based_auto_wrap_policy=size_based_auto_wrap_policy)
def paste(text):
    global model_of_policy
    sharded.clear()
    model_of_policy = model = Module(Block(kinds["Linear"](), kinds["ReLU"]()), Block(kinds["Linear"](), kinds["ReLU"]()))
    names = {"model": model, "Block": Block}
    exec(compile(text, "pasted", "exec"), names)
    assert not sharded or sharded[-1] is model
    for i, module in enumerate(sharded):  # those inside first
        for inside in module.modules(): assert inside is module or inside not in sharded[i:]
)";

TEST(PytorchLines, RunUnchanged) {
    if (std::system("python3 -c 0 >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no python3";
    const traces::TemporaryFolder folder;
    const std::string script = folder / "pasted.py", errors = folder / "errors.txt";
    std::ofstream out(script);
    out << kStubs;
    for (const auto& changes : kSettings) {
        for (const PytorchLines& api : lines_under(changes)) {
            out << "paste('''\n";
            for (const std::string& line : api.lines) out << line << "\n";
            out << "''')\n";
        }
    }
    out.close();
    const int status = std::system(("python3 -B '" + script + "' 2>'" + errors + "'").c_str());
    std::ifstream read(errors);
    EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(read), {});
}

TEST(PytorchLines, ClassesOfTorchHaveItsPrefixAndOthersAreNamed) {
    const auto both = lines_under({{"fsdp.wrap", "module:Block,Linear"}});
    ASSERT_EQ(both.size(), 2U);
    for (const PytorchLines& api : both) {
        EXPECT_THAT(api.lines, Contains("from torch import nn")) << api.api;
        EXPECT_THAT(api.lines, Contains(HasSubstr("Block, nn.Linear"))) << api.api;
        EXPECT_THAT(api.lines, Contains("# import Block from where it is defined")) << api.api;
    }
}

TEST(PytorchLines, AClassThatModelsOftenDefineThemselvesIsNamed) {
    for (const PytorchLines& api : lines_under({{"fsdp.wrap", "module:Block,RMSNorm"}}))
        EXPECT_THAT(api.lines, Contains(HasSubstr("if your model defines RMSNorm itself"))) << api.api;
    for (const PytorchLines& api : lines_under({{"fsdp.wrap", "module:Block,Linear"}}))
        EXPECT_THAT(api.lines, Not(Contains(HasSubstr("itself")))) << api.api;
}

TEST(PytorchLines, SayWhatIsFreedAfterTheForward) {
    auto lines = lines_under({{"fsdp.wrap", "module:Block"}, {"fsdp.reshard_after_forward", "false"}});
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines.front().lines, Contains(HasSubstr("fully_shard(module, reshard_after_forward=False)")));
    EXPECT_THAT(lines.back().lines, Contains(HasSubstr("ShardingStrategy.SHARD_GRAD_OP")));
    lines = lines_under({{"fsdp.reshard_after_forward", "true"}});
    ASSERT_EQ(lines.size(), 1U) << "FSDP1 keeps the root's parameters";
    EXPECT_THAT(lines.front().lines, Contains("fully_shard(model, reshard_after_forward=True)"));
}

TEST(PytorchLines, SelectByPath) {
    const auto lines = lines_under({{"fsdp.wrap", "path:blocks.*.mlp"}, {"fsdp.exclude", "path:**.0.mlp"}});
    EXPECT_THAT(lines.front().lines, Contains("import re"));
    EXPECT_THAT(lines.front().lines, Contains(HasSubstr("re.fullmatch(r\"blocks\\.[^.]*\\.mlp\", n)")));
    EXPECT_THAT(lines.front().lines, Contains(HasSubstr("re.fullmatch(r\".*\\.0\\.mlp\", n)")));
    EXPECT_THAT(lines.front().lines, Not(Contains(HasSubstr("# import blocks"))));
}

TEST(PytorchLines, NameWhatATraceDoesNotShow) {
    const auto both = lines_under({});
    EXPECT_THAT(both.front().lines, Contains(HasSubstr("mp_policy, mesh and ignored_params")));
    EXPECT_THAT(both.back().lines, Contains(HasSubstr("device_id, process_group and ignored_states")));
    EXPECT_THAT(both.back().lines, Contains(HasSubstr("use_orig_params=True")));
}

TEST(PytorchLines, FullyShardHasNoLinesForAnOrderOfGathersThatItLacks) {
    const auto lines = lines_under({{"fsdp.layout", "fsdp1"}, {"fsdp.backward_prefetch", "NONE"}});
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines.front().api, "FSDP1");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
