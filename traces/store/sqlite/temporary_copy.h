// A private copy of a database whose journal cannot be worked off where it lies. Internal to traces/.
#pragma once

#include <optional>
#include <string>

#include "traces/store/sqlite/scratch_folder.h"

namespace shardscope::traces {

// In a new folder of the owner's alone (in $TMPDIR, else /tmp), gone with the scope. Whoever has opened the
// copy by then keeps it: the system frees its space when the last one closes it, however that one ends.
class TemporaryCopy {
  public:
    // Copies the database and its journals. Throws StoreError where there is no room.
    explicit TemporaryCopy(const std::string& path);

    std::string path() const { return folder_->path() + "/trace.sqlite"; }

  private:
    std::optional<ScratchFolder> folder_;
};

}  // namespace shardscope::traces
