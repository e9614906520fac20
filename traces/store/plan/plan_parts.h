// SHARD_PLAN_PARTS: the memory of a planner's rows by the formulas that papers give for each ZeRO stage, next
// to the simulated peak. Read and written separately: only needed where a plan's row is shown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardscope::traces::store {

inline constexpr std::size_t kZeroStages = 4;

// One part of the memory of one row, on one device. Bytes.
struct PlanPart {
    int number = 0;    // PlanRow::number
    std::string part;  // "model", "gradients", "optimizer", "activations"
    int stage = 0;     // the row's ZeRO stage
    int devices = 1;   // devices that shard it among themselves
    bool offloaded = false;
    std::int64_t parameters = 0;
    bool known = false;                          // a formula exists; else the next two are meaningless
    std::array<double, kZeroStages> by_stage{};  // bytes that each stage would leave on a device
    double formula = 0;                          // of the row's own stage
    double simulated = 0;                        // of `categories` at the simulated peak
    std::string categories;                      // "parameters, unsharded_parameters"
};

// Stores into a finished database that is not open elsewhere. Throws StoreError.
void store_plan_parts(const std::string& path, std::span<const PlanPart> parts);

// By row, in the order in which they were stored. Empty if the file has none, is not a database, or is gone.
std::vector<PlanPart> load_plan_parts(const std::string& path);

}  // namespace shardscope::traces::store
