// What a rank's flight recorder dump says about its process groups, next to the records: the value of
// flight_recorder.rank<R>.groups in SHARD_RUN, one JSON object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces::schema {

struct DumpedGroup {
    std::string description;
    std::vector<std::int64_t> ranks;
    std::optional<std::int64_t> enqueued, started, completed;  // the last collective's sequence number
};
using DumpedGroups = std::map<std::string, DumpedGroup>;  // by the group's name

std::string to_json(const DumpedGroups& groups);

// Ignores values of another type than to_json() writes.
DumpedGroups parse_dumped_groups(std::string_view json);

}  // namespace shardscope::traces::schema
