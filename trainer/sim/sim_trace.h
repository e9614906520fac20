// Writes a simulated run as a trace: the rows that a recorded run has, with virtual times. It contains the
// first ranks and one rank of each other class. The remaining ranks did the same as these; the trace's run
// facts count them (sim.ranks_as_rank_0), since a rank without events would look idle.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/store/sink.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/cluster.h"
#include "trainer/sim/observer.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {

class SimTrace final : public RunObserver {
  public:
    // `full_ranks`: the number of ranks to show, from rank 0 on. `samples`: of an epoch; 0: nothing counts
    // epochs. The references must outlive this object.
    SimTrace(traces::store::EventSink& sink, const sharding::Program& program, const Cluster& cluster,
             int full_ranks, std::int64_t samples = 0);

    // Called after the run has ended successfully.
    void summarise(const SimResult& result);
    // The time of the latest event so far, in nanoseconds.
    Time duration() const { return latest_; }

    void begun(const plan::Mesh& mesh, const RankClasses& ranks) override;
    void range_opened(int rank_class, Time at, std::string_view name, int module) override;
    void collective_opened(int rank_class, Time at, const plan::Op& op) override;
    void range_closed(int rank_class, Time at) override;
    void runtime_call(int rank_class, Time start, Time end, executor::trace_names::RuntimeFunction function,
                      std::int64_t correlation) override;
    void waited(int rank_class, Time start, Time end, plan::EventId event, std::int64_t correlation) override;
    void allocated(int rank_class, Time at, const plan::Plan& plan, const plan::Op& op,
                   const executor::MemoryBlock& block) override;
    void freed(int rank_class, Time at, const plan::Plan& plan, const plan::Op& op,
               const executor::MemoryBlock& block) override;
    void memory_counts(int rank_class, Time at, std::int64_t active, std::int64_t reserved) override;
    void step_ended(int rank_class, std::int64_t step, Time start, Time end,
                    const executor::StepMemory& memory) override;
    void work_ended(int rank_class, const StreamItem& item, Time start, Time end) override;

  private:
    struct Range {
        Time start = 0;
        traces::schema::StringId name = traces::schema::StringId::empty;
        int module = -1;
        const plan::Op* collective = nullptr;  // null: not a collective's range
    };
    struct Class {
        std::vector<int> full;  // ranks that the trace shows
        std::vector<Range> open;
    };

    // A step that some classes of ranks have ended.
    struct EndedStep {
        std::size_t classes = 0;
        Time start = 0, end = 0;  // the latest
        executor::StepMemory memory;
    };

    Class& of(int rank_class) { return classes_[static_cast<std::size_t>(rank_class)]; }
    void choose(const RankClasses& ranks);
    void describe_ranks();
    void add_links();
    void memory(int rank_class, Time at, const plan::Plan& plan, const plan::Op& op,
                const executor::MemoryBlock& block, bool allocation);
    void collective(int rank, const StreamItem& item);
    template <class Row>
    void add(const Row& row, Time at);

    traces::store::EventSink& sink_;
    const sharding::Program& program_;
    const Cluster& cluster_;
    const int full_ranks_;
    const std::int64_t samples_;
    plan::Mesh mesh_;
    std::vector<int> shown_;  // ranks, sorted
    std::vector<Class> classes_;
    traces::schema::StringId nccl_domain_;
    std::map<std::int64_t, EndedStep> ended_steps_;
    std::optional<executor::LossScaler> loss_scaler_;  // in fp16; no simulated step overflows
    Time step_end_ = -1;                               // of the latest step that all have ended; -1: none
    Time latest_ = 0;
    std::int64_t uncommitted_ = 0;
};

}  // namespace shardscope::trainer::sim
