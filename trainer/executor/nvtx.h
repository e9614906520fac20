// The trainer's ranges for tools that listen to NVTX (Nsight Systems, shardscope-record): modules, steps and
// collectives under the names in our own trace. None of it exists while no tool listens.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/executor/nccl_payloads.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::sharding {
class Program;
}

namespace shardscope::trainer::executor {

class Nvtx {
  public:
    // A string that is already registered with the tool.
    using Name = void*;

    // Null: no tool listens, or NVTX's headers were missing at build time. NVTX chooses the tool once in a
    // process (NVTX_INJECTION64_PATH). `more`: Plans in addition to the program's.
    static std::unique_ptr<Nvtx> open(const sharding::Program& program,
                                      const std::vector<const plan::Plan*>& more = {});

    // The names of a Plan, by Op::name.
    const std::vector<Name>& of(const plan::Plan& plan) const { return plans_.at(&plan); }

    // Ranges nest per thread and domain. Any thread.
    void push(Name name) const;
    void push(const std::string& text) const;
    void pop() const;
    void mark(const std::string& text) const;  // an instant
    // Pushes a range in NCCL's domain, with the payload of NCCL's own ranges.
    void push_collective(traces::schema::Operation operation, const NcclPayload& payload) const;
    void pop_collective() const;

    // Names the calling thread.
    void name_thread(const std::string& name) const;

  private:
    Nvtx(const sharding::Program& program, const std::vector<const plan::Plan*>& more, void* nccl_domain);
    void add(const plan::Plan& plan);
    void describe_payloads() const;

    void* nccl_;  // domain
    Name collectives_[traces::schema::kOperations] = {};
    std::unordered_map<const plan::Plan*, std::vector<Name>> plans_;
};

}  // namespace shardscope::trainer::executor
