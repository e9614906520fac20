#include "trainer/lift/lifted.h"

#include <algorithm>

#include <fmt/core.h>

namespace shardscope::trainer::lift {

std::string fault_of(const LiftedStep& step) {
    const auto known = [](int id, const auto& list) {
        return id >= 0 && static_cast<std::size_t>(id) < list.size();
    };
    if (step.nodes.empty()) return "no module contains the recorded events";
    for (const Node& node : step.nodes) {
        if (node.calls.empty()) return fmt::format("module {} is never called", node.name);
        for (const Call& call : node.calls) {
            if (call.own.size() != call.children.size() + 1) {
                return fmt::format("a call of module {} has {} parts around {} calls of others", node.name,
                                   call.own.size(), call.children.size());
            }
            for (const int child : call.children) {
                if (std::find(node.children.begin(), node.children.end(), child) != node.children.end())
                    continue;
                return fmt::format(
                    "module {} calls {}, which is not inside it", node.name,
                    known(child, step.nodes) ? step.nodes[static_cast<std::size_t>(child)].name : "nothing");
            }
        }
        for (const std::vector<int>* list : {&node.parameters, &node.shared}) {
            for (const int id : *list)
                if (!known(id, step.parameters))
                    return fmt::format("module {} has a parameter that is not there", node.name);
        }
    }
    return "";
}

}  // namespace shardscope::trainer::lift
