// Small XML files as a tree of elements with their attributes; texts between them are left out. Entities,
// document types and files beyond some limits are refused, so that no file costs more than its size.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::traces::importer {

struct XmlElement {
    std::string name;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<XmlElement> children;
    std::size_t line = 0;

    // "" without it.
    std::string_view attribute(std::string_view key) const;
};

// The root. `name`: the file's, for messages. Throws StoreError with one sentence that names the line.
XmlElement read_xml(std::string_view text, const std::string& name);

}  // namespace shardscope::traces::importer
