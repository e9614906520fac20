// SHARD_PLAN_PARTS: the memory of a planner's rows by formula, as papers give it by ZeRO stage, beside the
// simulated peak. Read and written by itself: only who shows a plan's row asks for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardscope::traces {

inline constexpr std::size_t kZeroStages = 4;

// One part of the memory of one row, on one device. Bytes.
struct PlanPart {
    int number = 0;    // PlanRow::number
    std::string part;  // "model", "gradients", "optimizer", "activations"
    int stage = 0;     // of the row
    int devices = 1;   // that shard among themselves
    bool offloaded = false;
    std::int64_t parameters = 0;
    bool known = false;                          // a formula exists; else the next two mean nothing
    std::array<double, kZeroStages> by_stage{};  // what each stage would leave on a device
    double formula = 0;                          // of the row itself
    double simulated = 0;                        // of `categories` at the simulated peak
    std::string categories;                      // "parameters, unsharded_parameters"
};

// Into a database that is whole and that nobody else has open. Throws StoreError.
void store_plan_parts(const std::string& path, std::span<const PlanPart> parts);

// By row, in the order in which they were stored. None where the file has none, is no database, or is gone.
std::vector<PlanPart> load_plan_parts(const std::string& path);

}  // namespace shardscope::traces
