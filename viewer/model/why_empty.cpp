// See why_empty.h.
#include "viewer/model/why_empty.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>

namespace shardscope::viewer::model {
namespace {

constexpr std::string_view kAlways = "always";
constexpr std::string_view kTrace = "`shardscope-train JOB.toml --trace run.sqlite`";
constexpr std::string_view kCuda = "on a GPU, unless `--no-cuda`";
constexpr std::string_view kCudaActivity = "`activities=[..., ProfilerActivity.CUDA]`";
constexpr std::string_view kTraceCuda = "`--trace=cuda`";
constexpr std::string_view kTraceNvtx = "`--trace=cuda,nvtx`";
constexpr std::string_view kAttach = "`python3 -m shardscope_torch train.py` (samples/pytorch)";

// By the order of the panels.
constexpr WhyEmpty kTable[] = {
    {"start", "start",
     "This trace has nothing that answers these questions. Record kernels, ranges and allocations "
     "(shardscope-record on a GPU, PyTorch's profiler with CUDA activity and profile_memory=True) for "
     "answers.",
     "allocations, steps, the device's work, several ranks: each answers a question", kTrace, kAttach,
     "CUDA activity and `profile_memory=True`", "`--trace=cuda,nvtx --cuda-memory-usage=true`"},
    {"runs", "runs",
     "These traces name no configuration: only runs of our trainer store theirs (shardscope-train JOB.toml "
     "--trace OUT.sqlite).",
     "the configuration of a run", kTrace, "", "", ""},
    {"timeline", "timeline",
     "This trace holds nothing that happened at a time. Record kernels, ranges, marks, allocations or "
     "counters "
     "(shardscope-record does by default) to see them over time.",
     "events, marks, allocations, counters or metrics: any of them is enough", kTrace, kAlways,
     "any activity", "any of `--trace=cuda,nvtx`"},
    {"timeline.samples", "timeline",
     "Over time this trace holds nothing but samples of threads: the Samples panel shows them. Record "
     "ranges, kernels or counters too (shardscope-record does by default) to see them here.",
     "more than samples of threads, which the Samples panel shows", kTrace, kAlways, "any activity",
     "any of `--trace=cuda,nvtx`"},
    {"job", "job",
     "This trace holds no samples of devices, hosts or processes. shardscope-record samples them unless "
     "--no-counters is given, shardscope-train --trace unless run.counters = false, and both ask NVIDIA's "
     "driver "
     "for a GPU's use, memory, power and clocks.",
     "counters (`SHARD_COUNTERS`)", kTrace, "unless `--no-counters`", "", ""},
    {"topology", "topology",
     "This trace tells neither the links between devices nor what ranks sent each other. Record collectives "
     "of several ranks, or add what nvidia-smi topo -m prints: shardscope-trace topology TRACE --from TEXT "
     "-o "
     "NEW.sqlite.",
     "links (`SHARD_TOPOLOGY`), or collectives and messages of known size", "`run.ranks` above 1",
     "NCCL 2.23 or newer, or NVIDIA's driver", "two ranks or more, with CUDA activity",
     "`--trace=cuda,nvtx`: NCCL's ranges with payloads"},
    {"modules", "modules",
     "This trace names no modules. They come from ranges called \"nn.Module: Class_n\": shardscope-train "
     "writes them, PyTorch's profiler does with with_stack=True, and NVTX ranges of that name count too.",
     "ranges called `nn.Module: Class_n`", kTrace, kAttach, "`with_stack=True`",
     "`--trace=cuda,nvtx`, with ranges of that name"},
    {"units", "units",
     "This trace contains no FSDP units, because its program shards nothing or its ranges name none "
     "(FullyShardedDataParallel.forward, FSDP::all_gather). Record a run of ours with parallel.mode = "
     "\"fsdp\", or a PyTorch profile of fully_shard, to see what they cost.",
     "FSDP units: ranges `FullyShardedDataParallel...` or `FSDP::...`", "`parallel.mode = \"fsdp\"`", kAttach,
     "`fully_shard` or `FullyShardedDataParallel`, with CPU activity", kTraceNvtx},
    {"units.device", "units",
     "This trace names FSDP units but holds no work of a device (a memory snapshot never does), so the "
     "durations of their gathers and reductions are unknown. Record CUDA activity to see them; the Memory "
     "panel shows what the units hold.",
     "the device's work of the units", kTrace, kCuda, kCudaActivity, kTraceNvtx},
    {"units.collectives", "units",
     "This trace names FSDP units but holds no collective of any of them, because they were not recorded or "
     "one rank ran alone. Record the device's work of several ranks to see what they cost.",
     "collectives of the units: two ranks or more", "`run.ranks` above 1",
     "`torchrun --nproc_per_node 2 ...`", "two ranks or more, with CUDA activity", kTraceNvtx},
    {"memory", "memory",
     "This trace holds no allocations of this rank. PyTorch's profiler records them with "
     "profile_memory=True, "
     "Nsight Systems with --cuda-memory-usage=true, shardscope-train always and shardscope-record on a GPU; "
     "a memory snapshot "
     "(torch.cuda.memory._dump_snapshot) opens here too.",
     "allocations", kTrace, kCuda, "`profile_memory=True`, or `torch.cuda.memory._dump_snapshot()`",
     "`--cuda-memory-usage=true`"},
    {"summary.ranks", "summary",
     "This trace holds no ranks, and so no time to sum up. Record ranges (steps are called ProfilerStep#N) "
     "or "
     "CUDA activity to see where a step's time goes.",
     "work on the host or on a device, of a rank", kTrace, "a program with NVTX ranges or a GPU",
     "any activity", kTraceNvtx},
    {"summary", "summary",
     "This rank has no complete step in the current selection. Widen or clear the time filter, or record "
     "more "
     "than one step (ranges called ProfilerStep#N).",
     "whole steps: ranges `ProfilerStep#N`; without any, the trace counts as one step", kTrace, kAttach,
     "`prof.step()` after each step", "`--trace=nvtx`, with ranges of that name"},
    {"operators", "operators",
     "This trace holds no operators of this rank in the current selection. They are host ranges: record with "
     "NVTX ranges (torch.autograd.profiler.emit_nvtx) or with the profiler's CPU activity.",
     "host ranges", kTrace, "NVTX ranges: `torch.autograd.profiler.emit_nvtx()`",
     "`activities=[ProfilerActivity.CPU, ...]`", "`--trace=nvtx`, with `emit_nvtx()`"},
    {"samples", "samples",
     "This trace holds no samples of threads, which say where processor time goes. Record any program "
     "with shardscope-record --sample 997, or open what perf script prints of a perf record -g.",
     "samples of threads (`SHARD_SAMPLES`)", "`shardscope-record --sample 997 -- shardscope-train JOB.toml`",
     "`--sample HZ`", "", ""},
    {"kernels", "kernels",
     "This trace holds no kernels of this rank in the current selection. They come from the device's side of "
     "the profiler: record with CUDA activity.",
     "kernels", kTrace, kCuda, kCudaActivity, kTraceCuda},
    {"copies", "copies",
     "This trace has no copies, because it holds no events of a device. Record with the device's activity "
     "(CUDA activity) to see them.",
     "copies and fills of memory", kTrace, kCuda, kCudaActivity, kTraceCuda},
    {"copies.none", "copies",
     "This trace has no copies: its devices only ran kernels, or their copies and fills of memory were not "
     "recorded. CUDA activity records both.",
     "a program that copies or fills memory", kTrace, kCuda, kCudaActivity, kTraceCuda},
    {"collectives", "collectives",
     "This trace holds no collectives, because its ranks did not communicate or the device's work was not "
     "recorded. Record a run of several ranks, with the device's activity, to see them.",
     "collectives: two ranks or more", "`run.ranks` above 1", "NCCL 2.23 or newer, unless `--no-nccl`",
     "two ranks or more, with CUDA activity", "`--trace=cuda,nvtx`: NCCL's kernels and ranges"},
    {"collectives.bandwidth", "collectives",
     "No collective of the current selection has known bytes, ranks and a transfer time. Record several "
     "ranks "
     "with NCCL's metadata, or measure them: shardscope-train --bench-collectives JOB.toml --trace "
     "FILE.sqlite.",
     "collectives of known size; best those of a benchmark", "`--bench-collectives --trace FILE.sqlite`",
     "NCCL 2.23 or newer, unless `--no-nccl`", "two ranks or more, with CUDA activity",
     "`--trace=cuda,nvtx`: NCCL's ranges with payloads"},
    {"collectives.one_rank", "collectives",
     "This trace holds one rank, so that there is no other to compare it with. Open the traces of all ranks "
     "merged (shardscope-trace merge) to see which rank comes last.",
     "several ranks in one trace", "`run.ranks` above 1", "`torchrun ...`, or `shardscope-trace merge`",
     "the files of all ranks, opened together", "the exports of all ranks, opened together"},
    {"distributed", "distributed",
     "This trace holds no work of a device, because only the host was recorded or nothing ran. Record the "
     "devices of all ranks to see them beside each other.",
     "the device's work of all ranks", "`run.ranks` above 1", kCuda, kCudaActivity, kTraceCuda},
    {"schedule", "schedule",
     "This trace has no pipeline: no range names an action of a schedule (PP:0F3, as PyTorch's "
     "torch.distributed.pipelining writes them) and no plan is stored. Record a run of ours with "
     "parallel.pipeline above 1, a PyTorch profile of a pipeline schedule, or make a schedule without a run: "
     "shardscope-train schedule 1f1b --pipeline 4 --micro-batches 8 --trace FILE.sqlite.",
     "ranges of a pipeline's actions (`PP:0F3`), or a stored plan", "`parallel.pipeline` above 1",
     "ranges of that name", "`torch.distributed.pipelining`, with CPU activity", "ranges of that name"},
    {"schedule.ran", "schedule",
     "This trace has a planned schedule, but no range of it ran: host ranges were not recorded, or no step "
     "was "
     "complete. Record host ranges (PP:0F3) of at least one whole step to see it.",
     "host ranges of a whole step", kTrace, "unless `--no-nvtx`", "CPU activity", "`--trace=nvtx`"},
    {"shardmap", "shardmap",
     "This trace holds no FSDP units, because its program shards nothing or its ranges do not name them "
     "(FullyShardedDataParallel.forward, FSDP::all_gather). Record a run of ours, or a PyTorch profile of "
     "fully_shard or FullyShardedDataParallel, to see where the parameters are.",
     "FSDP units and their collectives", "`parallel.mode = \"fsdp\"`", kAttach,
     "`fully_shard` or `FullyShardedDataParallel`, with CUDA activity", kTraceNvtx},
    {"shardmap.ddp", "shardmap",
     "This run is data parallel (DDP): every rank keeps all parameters whole, all the time, so that there is "
     "nothing to map. Record a run with parallel.mode = \"fsdp\" to see units gathered and freed.",
     "a run that shards", "`parallel.mode = \"fsdp\"`", "a program with FSDP",
     "`fully_shard` or `FullyShardedDataParallel`", "a program with FSDP"},
    {"shardmap.collectives", "shardmap",
     "This trace names FSDP units but holds no collective of any of them, because they were not recorded or "
     "one rank ran alone. Record the device's work of several ranks to see where the parameters are.",
     "collectives of the units: two ranks or more", "`run.ranks` above 1",
     "`torchrun --nproc_per_node 2 ...`", "two ranks or more, with CUDA activity", kTraceNvtx},
    {"idle", "idle",
     "This trace holds no events of a device, so its idle time is unknown: record kernels and copies (CUDA "
     "activity) to see it.",
     "the device's work", kTrace, kCuda, kCudaActivity, kTraceCuda},
    {"path", "idle",
     "This rank has no complete step in the current selection, so there is no path through one. Record one "
     "whole step (a range called ProfilerStep#N), or clear the time filter.",
     "whole steps with the device's work", kTrace, kAttach,
     "`prof.step()` after each step, with CUDA activity",
     "`--trace=cuda,nvtx`, with ranges `ProfilerStep#N`"},
    {"advice", "advice",
     "This trace holds no kernels, ranges, allocations or collectives that the rules could find something "
     "in. "
     "Record a program with them (shardscope-record, or PyTorch's profiler with CUDA activity) for advice.",
     "what the rules look at: kernels, ranges, allocations, collectives, counters", kTrace, kAlways,
     "CPU and CUDA activity", kTraceNvtx},
    {"compare", "compare",
     "Only plans are open, and they have no timeline to compare. Open two runs, or the simulated traces of "
     "two "
     "rows of a plan.",
     "two open traces", kTrace, kAlways, "two profiles", "two exports"},
    {"training", "training",
     "None of these traces has metrics of training. shardscope-train records losses, learning rate, "
     "throughput "
     "and memory with every trace. Another program records its own with a mark in its loop, "
     "torch.cuda.nvtx.mark(\"metric loss=2.31 step=4\"), or with a range of that name, "
     "torch.profiler.record_function(...).",
     "metrics: marks or ranges `metric NAME=VALUE step=N`", kTrace,
     "`torch.cuda.nvtx.mark(\"metric loss=2.31 step=4\")`", "`record_function(\"metric loss=2.31 step=4\")`",
     "`--trace=nvtx`, with such marks"},
    {"plan", "plan",
     "No plan is open. A planner writes one: shardscope-train plan JOB.toml -o plan.sqlite tries the "
     "configurations of a job on a simulated cluster; open that file here.",
     "a plan", "`shardscope-train plan JOB.toml -o plan.sqlite`", "", "", ""},
};

std::string_view or_dash(std::string_view text) {
    return text.empty() ? "-" : text;
}

}  // namespace

std::span<const WhyEmpty> why_empty_table() {
    return kTable;
}

std::string_view why_empty(std::string_view key) {
    for (const WhyEmpty& row : kTable) {
        if (row.key == key) return row.said;
    }
    throw std::out_of_range("no reason is called " + std::string(key));
}

std::string why_empty_page(std::string_view (*title_of)(std::string_view panel)) {
    std::string page =
        "# Why a panel is empty\n"
        "\n"
        "<!-- Made from viewer/model/why_empty.cpp by the test WhyEmptyPage; run it with "
        "SHARDSCOPE_UPDATE_DOCS=1 "
        "to renew this page. -->\n"
        "\n"
        "A panel shows what a trace holds, and nothing that it does not: where it has nothing, it says what "
        "is "
        "missing and\n"
        "what to record. This is the list. A trace of any one kind of row opens: of counters or marks alone "
        "the "
        "timeline shows\n"
        "these, and `shardscope-trace info` counts them.\n"
        "\n"
        "| panel | it needs | `shardscope-train` | `shardscope-record` | PyTorch's profiler | Nsight Systems "
        "|\n"
        "| --- | --- | --- | --- | --- | --- |\n";
    for (const WhyEmpty& row : kTable) {
        page +=
            fmt::format("| {} | {} | {} | {} | {} | {} |\n", title_of(row.panel), row.needs,
                        or_dash(row.trainer), or_dash(row.record), or_dash(row.pytorch), or_dash(row.nsight));
    }
    page +=
        "\n"
        "What each tool records by default: [recording.md](recording.md); which files open: "
        "[formats.md](formats.md); what the\n"
        "figures mean: [definitions.md](definitions.md).\n";
    return page;
}

}  // namespace shardscope::viewer::model
