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
    std::map<std::string, traces::schema::StringId, std::less<>> ids{{"", traces::schema::StringId::empty}};
    std::vector<traces::schema::KernelRow> kernels;
    std::vector<traces::schema::MemcpyRow> memcpys;
    std::vector<traces::schema::MemsetRow> memsets;
    std::vector<traces::schema::RuntimeRow> runtimes;
    std::vector<traces::schema::SynchronizationRow> synchronizations;
    std::vector<traces::schema::RangeRow> ranges;
    std::vector<traces::schema::CollectiveRow> collectives;
    std::vector<traces::schema::MemoryRow> memory;
    std::vector<traces::schema::CounterRow> counters;
    std::vector<traces::schema::StepRow> steps;
    std::vector<traces::schema::LossRow> losses;
    std::vector<traces::schema::RunInfoRow> run_info;
    std::vector<traces::schema::RankRow> ranks;
    std::vector<traces::schema::ProcessRow> processes;
    std::vector<traces::schema::ThreadRow> threads;
    std::vector<traces::schema::SampleRow> samples;
    std::vector<traces::schema::StreamRow> streams;
    std::vector<traces::schema::ModuleRow> modules;
    std::vector<traces::schema::UnitRow> units;
    std::vector<traces::schema::PredictionRow> predictions;
    std::vector<traces::schema::PredictionPartRow> prediction_parts;
    std::vector<traces::schema::DiagnosticRow> diagnostics;
    std::vector<traces::schema::PayloadSchemaRow> schemas;
    std::vector<traces::schema::PayloadEnumRow> enums;
    std::vector<traces::schema::ScopeRow> scopes;
    std::vector<traces::schema::NcclCommunicatorRow> nccl_communicators;
    std::vector<traces::schema::NcclOperationRow> nccl_operations;
    std::vector<traces::schema::DeviceRow> devices;
    std::vector<traces::schema::TopologyRow> topology;
    std::atomic<int> commits{0};

    std::string text(traces::schema::StringId id) const { return strings.at(static_cast<std::size_t>(id)); }
    // The only range with that text.
    const traces::schema::RangeRow& range(std::string_view wanted) const {
        const traces::schema::RangeRow* found = nullptr;
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

class MemorySink final : public traces::store::EventSink {
  public:
    explicit MemorySink(Received& received) : got_(received) {}

    traces::schema::StringId intern(std::string_view text) override {
        if (const auto it = got_.ids.find(text); it != got_.ids.end()) return it->second;
        const auto id = static_cast<traces::schema::StringId>(got_.strings.size());
        got_.strings.emplace_back(text);
        got_.ids.emplace(text, id);
        return id;
    }
    std::string_view text(traces::schema::StringId id) const override {
        return got_.strings.at(static_cast<std::size_t>(id));
    }

    void add(const traces::schema::KernelRow& row) override { keep(got_.kernels, row); }
    void add(const traces::schema::MemcpyRow& row) override { keep(got_.memcpys, row); }
    void add(const traces::schema::MemsetRow& row) override { keep(got_.memsets, row); }
    void add(const traces::schema::RuntimeRow& row) override { keep(got_.runtimes, row); }
    void add(const traces::schema::SynchronizationRow& row) override { keep(got_.synchronizations, row); }
    void add(const traces::schema::RangeRow& row) override { keep(got_.ranges, row); }
    void add(const traces::schema::CollectiveRow& row) override { keep(got_.collectives, row); }
    void add(const traces::schema::MemoryRow& row) override { keep(got_.memory, row); }
    void add(const traces::schema::CounterRow& row) override { keep(got_.counters, row); }
    void add(const traces::schema::StepRow& row) override { keep(got_.steps, row); }
    void add(const traces::schema::LossRow& row) override { keep(got_.losses, row); }
    void add(const traces::schema::RunInfoRow& row) override { keep(got_.run_info, row); }
    void add(const traces::schema::RankRow& row) override { keep(got_.ranks, row); }
    void add(const traces::schema::ProcessRow& row) override { keep(got_.processes, row); }
    void add(const traces::schema::ThreadRow& row) override { keep(got_.threads, row); }
    void add(const traces::schema::SampleRow& row) override { keep(got_.samples, row); }
    void add(const traces::schema::StreamRow& row) override { keep(got_.streams, row); }
    void add(const traces::schema::ModuleRow& row) override { keep(got_.modules, row); }
    void add(const traces::schema::UnitRow& row) override { keep(got_.units, row); }
    void add(const traces::schema::PredictionRow& row) override { keep(got_.predictions, row); }
    void add(const traces::schema::PredictionPartRow& row) override { keep(got_.prediction_parts, row); }
    void add(const traces::schema::DiagnosticRow& row) override { keep(got_.diagnostics, row); }
    void add(const traces::schema::PayloadSchemaRow& row) override { keep(got_.schemas, row); }
    void add(const traces::schema::PayloadEnumRow& row) override { keep(got_.enums, row); }
    void add(const traces::schema::ScopeRow& row) override { keep(got_.scopes, row); }
    void add(const traces::schema::NcclCommunicatorRow& row) override { keep(got_.nccl_communicators, row); }
    void add(const traces::schema::NcclOperationRow& row) override { keep(got_.nccl_operations, row); }
    void add(const traces::schema::DeviceRow& row) override { keep(got_.devices, row); }
    void add(const traces::schema::TopologyRow& row) override { keep(got_.topology, row); }

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
