// Writes what PyTorch's profiler writes for one rank of two, event by event: a main thread, autograd's
// thread, a stream for kernels and one for collectives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "traces/import/open.h"
#include "traces/store/columns/trace.h"

namespace shardscope::trainer::testing {

class PytorchTrace {
  public:
    using Json = nlohmann::ordered_json;
    using Body = std::function<void()>;

    void range(const std::string& name, const char* category, const Body& body,
               Json arguments = Json::object()) {
        const double start = now_;
        const std::size_t at = events_.size();
        events_.push_back(nullptr);
        now_ += 1;
        body();
        now_ += 1;
        events_[at] = event(name, category, start, now_ - start, std::move(arguments));
    }
    void module(const std::string& name, const Body& body) {
        const int id = ++python_id_, parent = python_parent_;
        python_parent_ = id;
        range("nn.Module: " + name, "python_function", body,
              {{"Python id", id},
               {"Python parent id", parent == 0 ? Json(nullptr) : Json(parent)},
               {"Python module id", std::stoi(name.substr(name.rfind('_') + 1))}});
        python_parent_ = parent;
    }
    // `key` links it to its node of the backward.
    void operation(const std::string& name, const std::vector<std::vector<std::int64_t>>& dims, int key,
                   const Body& body) {
        forward_[key] = now_;
        Json arguments = Json::object();
        if (!dims.empty()) arguments["Input Dims"] = dims;
        range(name, "cpu_op", body, std::move(arguments));
    }
    void backward(const Body& body) {
        thread_ = kAutograd;
        body();
        thread_ = kMain;
    }
    void node(const std::string& name, int key, const Body& body) {
        range("autograd::engine::evaluate_function: " + name, "cpu_op", [&] {
            const int link = ++last_link_;
            events_.push_back({{"ph", "s"},
                               {"cat", "fwdbwd"},
                               {"name", "fwdbwd"},
                               {"id", link},
                               {"pid", kProcess},
                               {"tid", kMain},
                               {"ts", forward_.at(key)}});
            events_.push_back({{"ph", "f"},
                               {"cat", "fwdbwd"},
                               {"name", "fwdbwd"},
                               {"id", link},
                               {"pid", kProcess},
                               {"tid", kAutograd},
                               {"ts", now_},
                               {"bp", "e"}});
            range(name, "cpu_op", body);
        });
    }
    void kernel(const std::string& name, double took) {
        const int correlation = launch();
        stream_ = std::max(stream_, now_);
        on_device(name, stream_, took, 7, {{"correlation", correlation}});
        stream_ += took;
    }
    // A collective starts after the work of the kernels' stream, except a gather; later kernels wait only for
    // gathers.
    void collective(const std::string& kernel, const std::string& name, std::int64_t in, std::int64_t out,
                    double took) {
        const int correlation = launch();
        wire_ = std::max({wire_, now_, name == "_allgather_base" ? 0 : stream_});
        on_device("ncclDevKernel_" + kernel + "_RING_LL", wire_, took, 20,
                  {{"correlation", correlation},
                   {"Collective name", name},
                   {"In msg nelems", in},
                   {"Out msg nelems", out},
                   {"Group size", 2},
                   {"dtype", "Float"},
                   {"Process Group Name", "0"},
                   {"Process Group Ranks", "[0, 1]"}});
        wire_ += took;
        if (name == "_allgather_base") stream_ = std::max(stream_, wire_);  // its unit waits for it
    }
    void wait_for_communication() { stream_ = std::max(stream_, wire_); }

    void allocate(const std::string& what, std::int64_t bytes) {
        next_address_ += 1 << 20;
        memory_[what] = {next_address_, bytes};
        memory(next_address_, bytes);
    }
    void free(const std::string& what) { memory(memory_.at(what).first, -memory_.at(what).second); }

    std::string json() const {
        const Json properties = Json::array({Json{{"id", 0}, {"name", "NVIDIA A100-SXM4-40GB"}}});
        const Json whole = {{"schemaVersion", 1},
                            {"deviceProperties", properties},
                            {"distributedInfo", {{"backend", "nccl"}, {"rank", 0}, {"world_size", 2}}},
                            {"record_shapes", 1},
                            {"profile_memory", 1},
                            {"traceEvents", events_},
                            {"traceName", "trace.json"}};
        return whole.dump();
    }

  private:
    static constexpr int kProcess = 100, kMain = 100, kAutograd = 101;

    Json event(const std::string& name, const char* category, double start, double took,
               Json arguments) const {
        return {{"ph", "X"},      {"cat", category}, {"name", name}, {"pid", kProcess},
                {"tid", thread_}, {"ts", start},     {"dur", took},  {"args", std::move(arguments)}};
    }
    int launch() {
        const int correlation = ++correlation_;
        events_.push_back(event("cudaLaunchKernel", "cuda_runtime", now_, 5, {{"correlation", correlation}}));
        now_ += 6;
        return correlation;
    }
    void on_device(const std::string& name, double start, double took, int stream, Json arguments) {
        arguments["device"] = 0;
        arguments["stream"] = stream;
        events_.push_back({{"ph", "X"},
                           {"cat", "kernel"},
                           {"name", name},
                           {"pid", 0},
                           {"tid", stream},
                           {"ts", start},
                           {"dur", took},
                           {"args", std::move(arguments)}});
    }
    void memory(std::int64_t address, std::int64_t bytes) {
        live_ += bytes;
        events_.push_back({{"ph", "i"},
                           {"cat", "cpu_instant_event"},
                           {"name", "[memory]"},
                           {"pid", kProcess},
                           {"tid", thread_},
                           {"ts", now_},
                           {"s", "t"},
                           {"args",
                            {{"Device Type", 1},
                             {"Device Id", 0},
                             {"Addr", address},
                             {"Bytes", bytes},
                             {"Total Allocated", live_}}}});
        now_ += 1;
    }

    std::vector<Json> events_;
    double now_ = 1000, stream_ = 0, wire_ = 0;  // us
    int thread_ = kMain, python_id_ = 0, python_parent_ = 0, correlation_ = 0, last_link_ = 0;
    std::map<int, double> forward_;
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> memory_;  // address, bytes
    std::int64_t next_address_ = std::int64_t{1} << 32, live_ = 0;
};

}  // namespace shardscope::trainer::testing
