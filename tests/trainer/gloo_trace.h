// Writes what PyTorch's profiler writes for the ranks of a job on processors: operators on the main thread,
// collectives that it requests and a thread of Gloo's carries out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace shardscope::trainer::testing {

class GlooTrace {
  public:
    using Json = nlohmann::ordered_json;
    using Body = std::function<void()>;

    // `slow`: factors of the rank's operators' times, which take turns.
    explicit GlooTrace(int rank, std::vector<double> slow = {1}, int ranks = 2)
        : rank_(rank), ranks_(ranks), slow_(std::move(slow)) {}

    void range(const std::string& name, const Body& body, const char* category = "user_annotation",
               Json arguments = Json::object()) {
        const double start = now_;
        const std::size_t at = events_.size();
        events_.push_back(nullptr);
        now_ += 1;
        body();
        now_ += 1;
        events_[at] = event(name, category, kMain, start, now_ - start, std::move(arguments));
    }
    void module(const std::string& name, const Body& body) { range("nn.Module: " + name, body); }
    // `key` links it to its node of the backward; 0: none.
    void operation(const std::string& name, const std::vector<std::vector<std::int64_t>>& dims, double took,
                   int key = 0) {
        if (key != 0) forward_[key] = now_;
        Json types = Json::array();
        for (std::size_t i = 0; i < dims.size(); ++i) types.push_back("float");
        took *= slow_[turn_++ % slow_.size()];
        events_.push_back(
            event(name, "cpu_op", kMain, now_, took, {{"Input Dims", dims}, {"Input type", types}}));
        now_ += took;
    }
    void node(const std::string& name, int key, const Body& body) {
        range(
            "autograd::engine::evaluate_function: " + name,
            [&] {
                const int link = ++last_link_;
                for (const auto& [phase, time] : {std::pair("s", forward_.at(key)), std::pair("f", now_)})
                    events_.push_back({{"ph", phase},
                                       {"cat", "fwdbwd"},
                                       {"name", "fwdbwd"},
                                       {"id", link},
                                       {"pid", pid()},
                                       {"tid", kMain},
                                       {"ts", time},
                                       {"bp", "e"}});
                range(name, body, "cpu_op");
            },
            "cpu_op");
    }
    // Gloo's thread begins 10 us after the request, and takes `took`. `blocks`: the main thread waits for it.
    void collective(const std::string& asked, const std::string& carried_out, std::int64_t part,
                    std::int64_t full, double took, bool blocks) {
        events_.push_back(event("c10d::" + asked, "cpu_op", kMain, now_, 5,
                                {{"Input Dims", Json::array({Json::array({full}), Json::array({part})})},
                                 {"Input type", {"float", "float"}}}));
        const double start = std::max(now_ + 10, gloo_);
        const std::int64_t own = carried_out == "all_gather" ? part : full;
        events_.push_back(
            event("gloo:" + carried_out, "user_annotation", kGloo, start, took,
                  {{"Input Dims", Json::array({Json::array({own})})}, {"Input type", {"float"}}}));
        gloo_ = start + took;
        now_ = blocks ? gloo_ + 2 : now_ + 5;
    }
    void wait() { now_ = std::max(now_, gloo_); }
    // Memory of the host, freed under the same name. `unseen`: bytes that PyTorch's total has beside the
    // events.
    void allocate(const std::string& what, std::int64_t bytes, std::int64_t unseen = 0) {
        live_bytes_ += unseen;
        buffers_[what] = {next_address_, bytes};
        memory(next_address_, bytes);
        next_address_ += bytes;
    }
    void free(const std::string& what) { memory(buffers_.at(what).first, -buffers_.at(what).second); }

    void write(const std::string& folder) const {
        const Json whole = {
            {"schemaVersion", 1},
            {"deviceProperties", Json::array()},
            {"distributedInfo", {{"backend", "gloo"}, {"rank", rank_}, {"world_size", ranks_}}},
            {"record_shapes", 1},
            {"profile_memory", 1},
            {"traceEvents", events_},
            {"traceName", "trace.json"}};
        std::ofstream(folder + "/rank" + std::to_string(rank_) + ".json") << whole.dump();
    }

  private:
    static constexpr int kMain = 1, kGloo = 2;
    int pid() const { return 100 + rank_; }
    Json event(const std::string& name, const char* category, int thread, double start, double took,
               Json arguments) const {
        return {{"ph", "X"},     {"cat", category}, {"name", name}, {"pid", pid()},
                {"tid", thread}, {"ts", start},     {"dur", took},  {"args", std::move(arguments)}};
    }

    void memory(std::int64_t address, std::int64_t bytes) {
        live_bytes_ += bytes;
        events_.push_back({{"ph", "i"},
                           {"cat", "cpu_instant_event"},
                           {"name", "[memory]"},
                           {"pid", pid()},
                           {"tid", kMain},
                           {"ts", now_},
                           {"s", "t"},
                           {"args",
                            {{"Device Type", 0},
                             {"Device Id", -1},
                             {"Addr", address},
                             {"Bytes", bytes},
                             {"Total Allocated", live_bytes_}}}});
        now_ += 1;
    }

    const int rank_, ranks_;
    const std::vector<double> slow_;
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> buffers_;  // address, bytes
    std::int64_t next_address_ = std::int64_t{1} << 32, live_bytes_ = 0;
    std::size_t turn_ = 0;
    std::vector<Json> events_;
    double now_ = 1000, gloo_ = 0;  // us
    int last_link_ = 0;
    std::map<int, double> forward_;
};

}  // namespace shardscope::trainer::testing
