// See table_memory.h.
#include "viewer/tables/table_memory.h"

namespace shardscope::viewer {

std::map<std::string, SavedTable>& table_memory() {
    static std::map<std::string, SavedTable> kMemory;
    return kMemory;
}

}  // namespace shardscope::viewer
