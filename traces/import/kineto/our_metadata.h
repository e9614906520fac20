// The member "shardscope" of a Chrome trace that our own export wrote (traces/export/chrome_trace.h describes
// it), and the argument "shardscope" of its events.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/sink.h"

namespace shardscope::traces::importer {

struct OurRank {
    schema::RankRow row;
    std::int64_t pid = 0, thread = 0;  // as the events have them
    std::vector<std::int64_t> threads;
    std::vector<schema::StreamRow> streams;
};

struct OurStep {
    schema::StepRow row;
    std::int64_t thread = 0;  // as the events have it
};

struct OurMetric {
    schema::MetricRow row;  // without its name
    std::string name;
};

struct OurMetadata {
    bool exported =
        true;  // our export wrote the file, which lists its ranks; false: only facts about the run
    bool ended = true;
    std::int64_t dropped = 0;
    std::vector<OurRank> ranks;
    std::vector<OurStep> steps;
    std::vector<OurMetric> metrics;
    std::vector<schema::AnyRow> rows;  // rows that need no translation
};

// Empty if the text is not such an object.
std::optional<OurMetadata> read_our_metadata(std::string_view json);

struct OurRange {
    int module = -1;
    std::optional<std::string> domain;
};
struct OurKernel {
    std::string short_name;
    std::optional<schema::CollectiveRow> collective;  // without rank and correlation
};
struct OurMemory {
    schema::MemoryCategory category = schema::MemoryCategory::other;
    std::optional<schema::MemorySpace> space;
    schema::Phase phase = schema::Phase::none;
    int unit = -1, module = -1, stream = -1;
    std::string name, annotation, stack;
};
struct OurCounter {
    int rank = -1;
    std::string host;
    int device = -1;
};
struct OurSample {
    std::int64_t weight = 0;
    int cpu = -1;
    std::string stack;
};
OurRange read_our_range(std::string_view json);
OurKernel read_our_kernel(std::string_view json);
OurMemory read_our_memory(std::string_view json);
OurCounter read_our_counter(std::string_view json);
OurSample read_our_sample(std::string_view json);

}  // namespace shardscope::traces::importer
