// A private copy of a database whose journal cannot be processed in its folder. Internal to traces/.
#pragma once

#include <optional>
#include <string>

#include "traces/store/sqlite/scratch_folder.h"

namespace shardscope::traces::store {

// In a new folder that only the owner can access (in $TMPDIR, else /tmp) and that is removed at the end of
// the scope. A connection that has the copy open by then keeps it: the system frees the space when the last
// one closes it, even if its process is killed.
class TemporaryCopy {
  public:
    // Copies the database and its journals. Throws StoreError if there is no room.
    explicit TemporaryCopy(const std::string& path);

    std::string path() const { return folder_->path() + "/trace.sqlite"; }

  private:
    std::optional<ScratchFolder> folder_;
};

}  // namespace shardscope::traces::store
