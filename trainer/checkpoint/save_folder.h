// Checks checkpoint.save before the first step: a run should not find out at its first save that nothing can
// be written there, or that each host of its processes has a folder of its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/checkpoint/files.h"

namespace shardscope::trainer::world {
class World;
}

namespace shardscope::trainer::checkpoint {

struct SaveFolder {
    std::filesystem::path path;
    bool overwrite = false;              // whether the checkpoints of another run may be replaced
    std::filesystem::path goes_on_from;  // the checkpoint's folder that the run started from; empty if none
};

// Creates the folder, locks it for this run (as long as the returned File lives), removes what interrupted
// saves left in it, and writes a file there. Waits a few seconds for an earlier run that is about to end, as
// after a restart. CheckpointError: the folder is not writable, another run saves there, or it contains
// checkpoints that this run neither continues nor may replace.
File make_ready(const SaveFolder& folder);

// The same if ranks are processes: rank 0 does it, then every process writes a file and rank 0 checks that it
// sees all of them. Collective; all processes throw the same error, or none throws. Only rank 0 gets the
// File.
std::optional<File> make_ready(const SaveFolder& folder, world::World& world);

// "rank 3 on node-1".
std::string process_name(const world::World& world, int rank);

}  // namespace shardscope::trainer::checkpoint
