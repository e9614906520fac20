// What a panel that has nothing to show needs, and how to record it: the sentences of the panels and
// docs/why-empty.md (which tests/viewer/why_empty_test.cpp writes) in one table. No Dear ImGui; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardscope::viewer::model {

struct WhyEmpty {
    std::string_view key;    // "kernels", or "units.device" for one of a panel's several reasons
    std::string_view panel;  // of panel_table()
    std::string_view said;   // what the trace lacks, and what to record: one or two sentences
    // For docs/why-empty.md: what fills it, and how each tool records it; empty: that tool cannot.
    std::string_view needs, trainer, record, pytorch, nsight;
};

std::span<const WhyEmpty> why_empty_table();

// WhyEmpty::said. Throws std::out_of_range for an unknown key.
std::string_view why_empty(std::string_view key);

// docs/why-empty.md; `title_of` names a panel for people.
std::string why_empty_page(std::string_view (*title_of)(std::string_view panel));

}  // namespace shardscope::viewer::model
