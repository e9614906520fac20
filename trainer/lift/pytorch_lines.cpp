#include "trainer/lift/pytorch_lines.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::lift {

namespace {

std::vector<std::string> recorded_units(const Lifted& lifted) {
    std::set<std::string> classes;
    for (std::size_t n = 1; n < lifted.step.nodes.size(); ++n)
        if (lifted.step.nodes[n].unit) classes.insert(lifted.step.nodes[n].class_name);
    return {classes.begin(), classes.end()};
}

// Modules of torch.nn that can be FSDP units: a class of this name needs the prefix "nn.".
constexpr std::array<std::string_view, 38> kOfTorch = {
    "AdaptiveLogSoftmaxWithLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "GRU",
    "GRUCell",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "PReLU",
    "RMSNorm",
    "RNN",
    "RNNCell",
    "ReLU",
    "Sequential",
    "SyncBatchNorm",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
};

static_assert(std::is_sorted(kOfTorch.begin(), kOfTorch.end()));

// Classes that models often define themselves under the same name; a trace cannot tell the two apart.
bool is_often_own(std::string_view name) {
    return name == "LayerNorm" || name == "MultiheadAttention" || name == "RMSNorm" ||
           name.starts_with("Transformer");
}

// The class as code writes it.
std::string python_class(const std::string& name) {
    return (std::binary_search(kOfTorch.begin(), kOfTorch.end(), name) ? "nn." : "") + name;
}

// The classes that code names, and the imports that they need.
struct UnitClasses {
    std::vector<std::string> names;  // of the units, as code writes them: "nn.Linear", "Block"
    bool of_torch = false;           // some are from torch.nn
    std::string own;                 // list of the model's own classes; "" none
    std::string doubtful;            // list of those from torch.nn or the model itself; "" none

    void add(const std::string& name) {
        const bool torch = python_class(name) != name;
        of_torch = of_torch || torch;
        if (!torch) own += (own.empty() ? "" : ", ") + name;
        if (torch && is_often_own(name)) doubtful += (doubtful.empty() ? "" : ", ") + name;
    }
};

bool is_by_path(const job::ModuleSelection& modules) {
    return modules.kind == job::ModuleSelection::Kind::path;
}

UnitClasses unit_classes(const Lifted& lifted, const job::Job& job) {
    const bool as_recorded = lifted.units && !job.origins.contains("fsdp.wrap");
    const auto units = as_recorded ? recorded_units(lifted) : job.fsdp.wrap.modules.names;
    std::set<std::string> all;
    const auto also = [&](const job::ModuleSelection& modules) {
        if (!is_by_path(modules)) all.insert(modules.names.begin(), modules.names.end());
    };
    also(job.fsdp.exclude);
    for (const job::UnitRule& rule : job.fsdp.unit) also(rule.units);
    UnitClasses out;
    for (const std::string& name : units) {
        out.names.push_back(python_class(name));
        if (!as_recorded && is_by_path(job.fsdp.wrap.modules)) continue;
        out.add(name);
        all.erase(name);
    }
    for (const std::string& name : all) out.add(name);
    return out;
}

std::string one_or_tuple(const std::vector<std::string>& names) {
    return names.size() == 1 ? names.front() : fmt::format("({})", traces::schema::joined(names, ", "));
}

// The pattern of a path as a regular expression.
std::string expression_of(std::string_view pattern) {
    std::string out;
    for (; !pattern.empty(); pattern.remove_prefix(1)) {
        const char c = pattern.front();
        if (pattern.starts_with("**")) {
            out += ".*";
            pattern.remove_prefix(1);
        } else if (c == '*' || c == '?') {
            out += c == '*' ? "[^.]*" : "[^.]";
        } else {
            out += c == '.' ? "\\." : std::string(1, c);
        }
    }
    return out;
}

// A Python list of the modules.
std::string list_of(const job::ModuleSelection& modules) {
    std::string list;
    if (is_by_path(modules)) {
        for (const std::string& pattern : modules.names)
            list += (list.empty() ? "" : "|") + expression_of(pattern);
        return fmt::format("[m for n, m in model.named_modules() if re.fullmatch(r\"{}\", n)]", list);
    }
    for (const std::string& name : modules.names) {
        list += fmt::format("{}[m for m in model.modules() if isinstance(m, {})]", list.empty() ? "" : " + ",
                            python_class(name));
        if (modules.every > 1) list += fmt::format("[::{}]", modules.every);
    }
    return list;
}

// Whether a class alone does not say which modules are units, or how they are treated.
bool chosen_singly(const job::FsdpSection& fsdp) {
    return fsdp.wrap.modules.every > 1 || is_by_path(fsdp.wrap.modules) || !fsdp.exclude.names.empty() ||
           !fsdp.unit.empty();
}

// Whether units are freed after their forward where fsdp.unit says nothing.
bool frees(const job::FsdpSection& fsdp) {
    return traits(fsdp.sharding_strategy).frees_after_forward &&
           fsdp.reshard_after_forward != job::Reshard::no;
}

// Lists the modules that are excluded, and which ones rules of their own free; `all` begins the latter.
void add_singles(std::vector<std::string>& lines, const job::FsdpSection& fsdp, std::string all) {
    bool paths = is_by_path(fsdp.exclude);
    for (const job::UnitRule& rule : fsdp.unit) paths = paths || is_by_path(rule.units);
    if (paths && !is_by_path(fsdp.wrap.modules)) lines.emplace_back("import re");
    if (!fsdp.exclude.names.empty()) lines.push_back("excluded = " + list_of(fsdp.exclude));
    if (fsdp.unit.empty()) return;
    lines.push_back(std::move(all));
    for (const job::UnitRule& rule : fsdp.unit) {
        lines.push_back(fmt::format("reshard.update(dict.fromkeys({}, {}))", list_of(rule.units),
                                    rule.reshard_after_forward ? "True" : "False"));
    }
}

// Lists the units, and with rules of single ones whether each is freed after its forward.
void add_units(std::vector<std::string>& lines, const job::FsdpSection& fsdp, const UnitClasses& classes) {
    const job::ModuleSelection& modules = fsdp.wrap.modules;
    const bool listed = modules.every > 1 || is_by_path(modules);
    if (is_by_path(modules)) lines.emplace_back("import re");
    lines.push_back("units = " + (listed ? list_of(modules)
                                         : fmt::format("[m for m in model.modules() if isinstance(m, {})]",
                                                       one_or_tuple(classes.names))));
    add_singles(lines, fsdp,
                fmt::format("reshard = dict.fromkeys(units, {})", frees(fsdp) ? "True" : "False"));
    if (!fsdp.exclude.names.empty()) lines.emplace_back("units = [m for m in units if m not in excluded]");
}

void add_imports(std::vector<std::string>& lines, bool torch, bool nn) {
    if (torch) lines.emplace_back("import torch");
    if (nn) lines.emplace_back("from torch import nn");
}

std::string torch_dtype(job::Precision precision) {
    switch (precision) {
        case job::Precision::bf16:
            return "torch.bfloat16";
        case job::Precision::fp16:
            return "torch.float16";
        case job::Precision::fp32:
            break;
    }
    return "torch.float32";
}

// Adds comments on what a trace does not show, so that all lines can be pasted.
void add_what_is_missing(std::vector<std::string>& lines, const UnitClasses& classes,
                         const std::string& arguments) {
    if (!classes.own.empty())
        lines.push_back(fmt::format("# import {} from where it is defined", classes.own));
    if (!classes.doubtful.empty())
        lines.push_back(
            fmt::format("# if your model defines {} itself: import that, and write it without \"nn.\"",
                        classes.doubtful));
    lines.push_back(
        fmt::format("# a trace does not show {}: take yours over from the present call", arguments));
}

PytorchLines fsdp2(const Lifted& lifted, const job::Job& job) {
    const job::FsdpSection& fsdp = job.fsdp;
    const UnitClasses classes = unit_classes(lifted, job);
    const bool by_size = classes.names.empty() && fsdp.wrap.kind == job::Wrap::Kind::size;
    const bool half = job.precision.param != job::Precision::fp32;
    std::string import = "from torch.distributed.fsdp import fully_shard", options;
    PytorchLines out{"FSDP2", {}};
    add_imports(out.lines, half, classes.of_torch || by_size);
    std::string missing = fsdp.shard_group > 0 ? "ignored_params" : "mesh and ignored_params";
    if (half) {
        import += ", MixedPrecisionPolicy";
        options += fmt::format(", mp_policy=MixedPrecisionPolicy(param_dtype={}, reduce_dtype={})",
                               torch_dtype(job.precision.param), torch_dtype(job.precision.reduce));
    } else {
        missing = "mp_policy, " + missing;
    }
    if (fsdp.cpu_offload) {
        import += ", CPUOffloadPolicy";
        options += ", offload_policy=CPUOffloadPolicy()";
    }
    out.lines.push_back(import);
    add_what_is_missing(out.lines, classes, missing);
    if (fsdp.shard_group > 0) {
        out.lines.emplace_back("from torch.distributed.device_mesh import init_device_mesh");
        out.lines.push_back(fmt::format(
            "mesh = init_device_mesh(\"cuda\", ({}, {}), mesh_dim_names=(\"replicate\", \"shard\"))",
            job.data_ranks() / fsdp.shard_group, fsdp.shard_group));
        options += ", mesh=mesh";
    }
    const std::string inner = options + (frees(fsdp) ? "" : ", reshard_after_forward=False");
    if (!classes.names.empty()) {
        const bool singly = chosen_singly(fsdp);
        if (singly) add_units(out.lines, fsdp, classes);
        out.lines.emplace_back("for module in reversed(list(model.modules())):  # those inside first");
        out.lines.push_back(fmt::format(
            "    if {}: fully_shard(module{})",
            singly ? "module in units" : fmt::format("isinstance(module, {})", one_or_tuple(classes.names)),
            fsdp.unit.empty() ? inner : options + ", reshard_after_forward=reshard[module]"));
    } else if (by_size) {
        add_singles(out.lines, fsdp, "reshard = {}");
        out.lines.emplace_back(
            "def shard_large(module):  # those inside first; returns what is left for this one");
        out.lines.emplace_back("    left = sum(p.numel() for p in module.parameters(recurse=False))");
        out.lines.emplace_back("    left += sum(shard_large(child) for child in module.children())");
        out.lines.push_back(fmt::format(
            "    if left < {} or isinstance(module, (nn.ModuleList, nn.ModuleDict)){}: return left",
            fsdp.wrap.threshold, fsdp.exclude.names.empty() ? "" : " or module in excluded"));
        out.lines.push_back(fmt::format("    fully_shard(module{})",
                                        fsdp.unit.empty()
                                            ? inner
                                            : fmt::format("{}, reshard_after_forward=reshard.get(module, {})",
                                                          options, frees(fsdp) ? "True" : "False")));
        out.lines.emplace_back("    return 0");
        out.lines.emplace_back("for child in model.children(): shard_large(child)");
    }
    const bool frees_root = fsdp.reshard_after_forward == job::Reshard::yes;
    out.lines.push_back(
        fmt::format("fully_shard(model{}{})", options, frees_root ? ", reshard_after_forward=True" : ""));
    return out;
}

PytorchLines fsdp1(const Lifted& lifted, const job::Job& job) {
    const job::FsdpSection& fsdp = job.fsdp;
    const UnitClasses classes = unit_classes(lifted, job);
    const bool half = job.precision.param != job::Precision::fp32;
    std::string import =
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy";
    const bool kept = fsdp.reshard_after_forward == job::Reshard::no;
    std::string line = fmt::format("model = FSDP(model, sharding_strategy=ShardingStrategy.{}",
                                   !kept                  ? traits(fsdp.sharding_strategy).name
                                   : fsdp.shard_group > 0 ? "_HYBRID_SHARD_ZERO2"
                                                          : "SHARD_GRAD_OP");
    PytorchLines out{"FSDP1", {}};
    add_imports(out.lines, half, classes.of_torch);
    std::string policy;
    std::vector<std::string> units;
    if (!classes.names.empty() && chosen_singly(fsdp)) {
        policy = "from torch.distributed.fsdp.wrap import CustomPolicy";
        add_units(units, fsdp, classes);
        const bool groups = fsdp.shard_group > 0;
        line += fmt::format(
            ", auto_wrap_policy=CustomPolicy(lambda m: {})",
            fsdp.unit.empty() ? "m in units"
                              : fmt::format("{{\"sharding_strategy\": ShardingStrategy.{} if reshard[m] else "
                                            "ShardingStrategy.{}}} if m in units else False",
                                            groups ? "HYBRID_SHARD" : "FULL_SHARD",
                                            groups ? "_HYBRID_SHARD_ZERO2" : "SHARD_GRAD_OP"));
    } else if (!classes.names.empty()) {
        policy = "from torch.distributed.fsdp.wrap import ModuleWrapPolicy";
        line += fmt::format(", auto_wrap_policy=ModuleWrapPolicy({{{}}})",
                            traces::schema::joined(classes.names, ", "));
    } else if (fsdp.wrap.kind == job::Wrap::Kind::size) {
        out.lines.emplace_back("import functools");
        policy = "from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy";
        line += fmt::format(
            ", auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params={})",
            fsdp.wrap.threshold);
    }
    if (fsdp.backward_prefetch == job::BackwardPrefetch::none) {
        line += ", backward_prefetch=None";
    } else {
        import += ", BackwardPrefetch";
        line += fmt::format(
            ", backward_prefetch=BackwardPrefetch.{}",
            fsdp.backward_prefetch == job::BackwardPrefetch::pre ? "BACKWARD_PRE" : "BACKWARD_POST");
    }
    if (fsdp.forward_prefetch) line += ", forward_prefetch=True";
    line += fmt::format(", limit_all_gathers={}", fsdp.limit_all_gathers ? "True" : "False");
    if (fsdp.cpu_offload) {
        import += ", CPUOffload";
        line += ", cpu_offload=CPUOffload(offload_params=True)";
    }
    std::string missing = "device_id, process_group and ignored_states";
    if (half) {
        import += ", MixedPrecision";
        line += fmt::format(", mixed_precision=MixedPrecision(param_dtype={}, reduce_dtype={})",
                            torch_dtype(job.precision.param), torch_dtype(job.precision.reduce));
    } else {
        missing = "mixed_precision, " + missing;
    }
    out.lines.push_back(import);
    if (!policy.empty()) out.lines.push_back(policy);
    add_what_is_missing(out.lines, classes, missing);
    out.lines.insert(out.lines.end(), units.begin(), units.end());
    out.lines.push_back(line + ", use_orig_params=True)");
    return out;
}

}  // namespace

std::vector<PytorchLines> pytorch_lines(const Lifted& lifted, const job::Job& job) {
    if (job.parallel.mode == job::ParallelMode::ddp) {
        // Buckets that were lifted as single parameters keep their recorded sizes.
        const bool whole = lifted.parameters == ParametersFrom::buckets && job.ddp.bucket_cap_mb < 0.01;
        // Without bucket_cap_mb the cap is 25 MiB, 1 MiB for the first bucket; an explicit value applies to
        // all.
        const job::DdpSection defaults;
        const bool as_default = job.ddp.bucket_cap_mb == defaults.bucket_cap_mb &&
                                job.ddp.first_bucket_mb == defaults.first_bucket_mb;
        const std::string buckets =
            whole || as_default ? "" : fmt::format(", bucket_cap_mb={:g}", job.ddp.bucket_cap_mb);
        const std::string view = job.ddp.gradient_as_bucket_view ? ", gradient_as_bucket_view=True" : "";
        return {{"DDP",
                 {"from torch.nn.parallel import DistributedDataParallel as DDP",
                  fmt::format("model = DDP(model{}{})", buckets, view)}}};
    }
    if (job.parallel.mode != job::ParallelMode::fsdp) return {};
    std::vector<PytorchLines> both;
    // fully_shard always shards, and gathers the next unit before computing a unit's gradients.
    if (gathers(job) && job.fsdp.backward_prefetch == job::BackwardPrefetch::pre)
        both.push_back(fsdp2(lifted, job));
    // FSDP1 keeps the root's parameters, and its policy by size knows no single units.
    const bool singles = !job.fsdp.exclude.names.empty() || !job.fsdp.unit.empty();
    const bool only_fully = job.fsdp.reshard_after_forward == job::Reshard::yes ||
                            (job.fsdp.wrap.kind == job::Wrap::Kind::size && singles);
    if (both.empty() || !only_fully) both.push_back(fsdp1(lifted, job));
    return both;
}

}  // namespace shardscope::trainer::lift
