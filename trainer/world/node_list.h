// The lists in which Slurm writes hosts and the number of tasks on each.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardscope::trainer::world {

// The first host of "node[03-05,7],b1": "node03". Empty: the text is not such a list.
std::string first_node(std::string_view list);

// The number of tasks on a node by "2(x3),1", which means 2, 2, 2, 1. Nothing: the list does not contain it.
std::optional<int> tasks_on_node(std::string_view list, int node);

}  // namespace shardscope::trainer::world
