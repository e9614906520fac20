// Small runs as the Kineto importer makes them, for tests of FSDP units: ranges and kernels, but without
// units and memory, which only our own traces have. Times in nanoseconds.
#pragma once

#include <memory>
#include <string_view>

#include "tests/traces/run_builder.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces {

// Rows as the Kineto importer makes them: one rank, a main thread and autograd's thread.
class KinetoRun {
  public:
    KinetoRun() {
        run_.sink().add(
            schema::ThreadRow{.global_tid = RunBuilder::other_tid(0), .name = "autograd", .rank = 0});
    }

    void annotation(std::int64_t start, std::int64_t end, std::string_view name) {
        run_.range_on(thread_, start, end, name, -1, store::kAnnotationDomain);
    }
    void op(std::int64_t start, std::int64_t end, std::string_view name) {
        run_.range_on(thread_, start, end, name, -1, store::kOperatorDomain);
    }
    void frame(std::int64_t start, std::int64_t end, std::string_view name) {
        run_.range_on(thread_, start, end, name, -1, store::kFunctionDomain);
    }
    void kernel(std::int64_t launched, std::int64_t start, std::int64_t end, int stream = 7,
                std::string_view name = "gemm") {
        const std::int64_t id = ++last_id_;
        run_.sink().add(schema::RuntimeRow{.start = launched,
                                           .end = launched + 1,
                                           .global_tid = thread_,
                                           .correlation = id,
                                           .name = run_.sink().intern("cudaLaunchKernel")});
        run_.sink().add(schema::KernelRow{.start = start,
                                          .end = end,
                                          .stream = stream,
                                          .correlation = id,
                                          .global_pid = RunBuilder::pid(0),
                                          .short_name = run_.sink().intern(name)});
    }
    // A gather with Kineto's arguments of a collective: no unit, no phase.
    void gather(std::int64_t launched, std::int64_t start, std::int64_t end, std::int64_t bytes) {
        kernel(launched, start, end, 20, "ncclDevKernel_AllGather_RING_LL");
        metadata(schema::Operation::all_gather, bytes);
    }
    void reduce(std::int64_t launched, std::int64_t start, std::int64_t end, std::int64_t bytes) {
        kernel(launched, start, end, 21, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL");
        metadata(schema::Operation::reduce_scatter, bytes);
    }
    void on_autograd() { thread_ = RunBuilder::other_tid(0); }
    RunBuilder& builder() { return run_; }
    std::unique_ptr<store::Trace> take() { return run_.take(); }

  private:
    void metadata(schema::Operation operation, std::int64_t bytes) {
        run_.sink().add(schema::CollectiveRow{.rank = 0,
                                              .correlation = last_id_,
                                              .operation = operation,
                                              .bytes = bytes,
                                              .group_size = 2,
                                              .sequence = sequence_++});
    }
    RunBuilder run_;
    std::int64_t thread_ = RunBuilder::tid(0), last_id_ = 1000, sequence_ = 0;
};

// One step of a model of two FSDP2 units: the root (embedding and head) and layers.0.
inline std::unique_ptr<store::Trace> fsdp2_step() {
    KinetoRun run;
    run.annotation(0, 4000, "ProfilerStep#0");
    run.annotation(100, 200, "FSDP::pre_forward");
    run.annotation(110, 130, "FSDP::all_gather");
    run.gather(120, 1000, 1400, 4096);
    run.annotation(140, 160, "FSDP::all_gather_copy_out");
    run.kernel(150, 1400, 1410);
    run.op(210, 220, "aten::embedding");
    run.kernel(215, 1410, 1500);
    run.annotation(300, 400, "FSDP::pre_forward (layers.0)");
    run.annotation(310, 330, "FSDP::all_gather (layers.0)");
    run.gather(320, 1400, 1700, 1024);
    run.annotation(340, 360, "FSDP::all_gather_copy_out (layers.0)");
    run.kernel(350, 1700, 1720);
    run.op(410, 420, "aten::mm");
    run.kernel(415, 1720, 2000);
    run.annotation(430, 440, "FSDP::post_forward (layers.0)");
    run.op(450, 460, "aten::mm");  // the head, which belongs to the root
    run.kernel(455, 2000, 2100);
    run.annotation(470, 480, "FSDP::post_forward");
    run.on_autograd();
    run.op(1000, 1200, "autograd::engine::evaluate_function: MmBackward0");
    run.annotation(1010, 1100, "FSDP::pre_backward");
    run.annotation(1050, 1090, "FSDP::backward_prefetch for layers.0");
    run.annotation(1060, 1080, "FSDP::all_gather (layers.0)");
    run.gather(1070, 2000, 2300, 1024);
    run.kernel(1150, 2100, 2250);
    run.op(1300, 1400, "autograd::engine::evaluate_function: MmBackward0");
    run.annotation(1310, 1330, "FSDP::pre_backward (layers.0)");
    run.annotation(1320, 1325, "FSDP::all_gather_copy_out (layers.0)");
    run.kernel(1322, 2300, 2320);
    run.op(1340, 1390, "MmBackward0");
    run.kernel(1380, 2320, 2900);
    run.annotation(1500, 1550, "FSDP::post_backward_reduce (layers.0)");
    run.annotation(1510, 1530, "nccl:_reduce_scatter_base");
    run.reduce(1520, 2900, 3300, 1024);
    run.op(1600, 1650, "autograd::engine::evaluate_function: EmbeddingBackward0");
    run.kernel(1620, 2900, 3000);
    run.annotation(1700, 1750, "FSDP::post_backward_reduce");
    run.reduce(1720, 3300, 3500, 4096);
    return run.take();
}

}  // namespace shardscope::traces
