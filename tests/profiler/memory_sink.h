// An EventSink for tests that keeps what it receives: rows in vectors, strings by id. It can be made to block
// (like a slow disk) or to fail (like a full one).
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "traces/store/sink.h"

namespace shardscope::profiler::testing {

// The content that a sink received; outlives the sink, which the recorder owns.
struct Received {
    std::vector<std::string> strings{""};
    std::map<std::string, traces::StringId, std::less<>> ids{{"", traces::StringId::empty}};
    std::vector<traces::KernelRow> kernels;
    std::vector<traces::MemcpyRow> memcpys;
    std::vector<traces::MemsetRow> memsets;
    std::vector<traces::RuntimeRow> runtimes;
    std::vector<traces::SynchronizationRow> synchronizations;
    std::vector<traces::RangeRow> ranges;
    std::vector<traces::CollectiveRow> collectives;
    std::vector<traces::MemoryRow> memory;
    std::vector<traces::CounterRow> counters;
    std::vector<traces::StepRow> steps;
    std::vector<traces::LossRow> losses;
    std::vector<traces::RunInfoRow> run_info;
    std::vector<traces::RankRow> ranks;
    std::vector<traces::ProcessRow> processes;
    std::vector<traces::ThreadRow> threads;
    std::vector<traces::StreamRow> streams;
    std::vector<traces::ModuleRow> modules;
    std::vector<traces::UnitRow> units;
    std::vector<traces::PredictionRow> predictions;
    std::vector<traces::PredictionPartRow> prediction_parts;
    std::vector<traces::DiagnosticRow> diagnostics;
    std::vector<traces::PayloadSchemaRow> schemas;
    std::vector<traces::PayloadEnumRow> enums;
    std::vector<traces::ScopeRow> scopes;
    std::vector<traces::NcclCommunicatorRow> nccl_communicators;
    std::vector<traces::NcclOperationRow> nccl_operations;
    std::atomic<int> commits{0};

    std::string text(traces::StringId id) const { return strings.at(static_cast<std::size_t>(id)); }
    // The only range with that text.
    const traces::RangeRow& range(std::string_view wanted) const {
        const traces::RangeRow* found = nullptr;
        for (const auto& row : ranges) {
            if (text(row.text) != wanted) continue;
            if (found != nullptr) throw std::runtime_error("several ranges " + std::string(wanted));
            found = &row;
        }
        if (found == nullptr) throw std::runtime_error("no range " + std::string(wanted));
        return *found;
    }

    // The test's thread controls the sink by these.
    std::atomic<bool> blocked{false};
    std::atomic<bool> fails{false};
};

class MemorySink final : public traces::EventSink {
  public:
    explicit MemorySink(Received& received) : got_(received) {}

    traces::StringId intern(std::string_view text) override {
        if (const auto it = got_.ids.find(text); it != got_.ids.end()) return it->second;
        const auto id = static_cast<traces::StringId>(got_.strings.size());
        got_.strings.emplace_back(text);
        got_.ids.emplace(text, id);
        return id;
    }

    void add(const traces::KernelRow& row) override { keep(got_.kernels, row); }
    void add(const traces::MemcpyRow& row) override { keep(got_.memcpys, row); }
    void add(const traces::MemsetRow& row) override { keep(got_.memsets, row); }
    void add(const traces::RuntimeRow& row) override { keep(got_.runtimes, row); }
    void add(const traces::SynchronizationRow& row) override { keep(got_.synchronizations, row); }
    void add(const traces::RangeRow& row) override { keep(got_.ranges, row); }
    void add(const traces::CollectiveRow& row) override { keep(got_.collectives, row); }
    void add(const traces::MemoryRow& row) override { keep(got_.memory, row); }
    void add(const traces::CounterRow& row) override { keep(got_.counters, row); }
    void add(const traces::StepRow& row) override { keep(got_.steps, row); }
    void add(const traces::LossRow& row) override { keep(got_.losses, row); }
    void add(const traces::RunInfoRow& row) override { keep(got_.run_info, row); }
    void add(const traces::RankRow& row) override { keep(got_.ranks, row); }
    void add(const traces::ProcessRow& row) override { keep(got_.processes, row); }
    void add(const traces::ThreadRow& row) override { keep(got_.threads, row); }
    void add(const traces::StreamRow& row) override { keep(got_.streams, row); }
    void add(const traces::ModuleRow& row) override { keep(got_.modules, row); }
    void add(const traces::UnitRow& row) override { keep(got_.units, row); }
    void add(const traces::PredictionRow& row) override { keep(got_.predictions, row); }
    void add(const traces::PredictionPartRow& row) override { keep(got_.prediction_parts, row); }
    void add(const traces::DiagnosticRow& row) override { keep(got_.diagnostics, row); }
    void add(const traces::PayloadSchemaRow& row) override { keep(got_.schemas, row); }
    void add(const traces::PayloadEnumRow& row) override { keep(got_.enums, row); }
    void add(const traces::ScopeRow& row) override { keep(got_.scopes, row); }
    void add(const traces::NcclCommunicatorRow& row) override { keep(got_.nccl_communicators, row); }
    void add(const traces::NcclOperationRow& row) override { keep(got_.nccl_operations, row); }

    void commit() override {
        obey();
        ++got_.commits;
    }

  private:
    template <typename Row>
    void keep(std::vector<Row>& rows, const Row& row) {
        obey();
        rows.push_back(row);
    }
    void obey() {
        while (got_.blocked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (got_.fails) throw std::runtime_error("no space left on the test's disk");
    }
    Received& got_;
};

}  // namespace shardscope::profiler::testing
