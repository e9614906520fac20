// checkpoint.save before the first step: a run should not learn at its first save that nothing can be written
// there, or that the hosts of its processes have a folder each.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/checkpoint/files.h"

namespace shardscope::trainer {

class World;

struct SaveFolder {
    std::filesystem::path path;
    bool overwrite = false;              // the checkpoints of another run may be replaced
    std::filesystem::path goes_on_from;  // the checkpoint's folder that the run started from; empty: none
};

// Makes the folder, takes it for this run (as long as what is returned lives), removes what interrupted saves
// left in it, and writes a file there. Waits a few seconds for a run before that is about to end, as after a
// restart. CheckpointError: it cannot be written to, another run saves there, or it holds checkpoints that
// this one neither goes on from nor may replace.
File make_ready(const SaveFolder& folder);

// The same where ranks are processes: rank 0 does it, then every process writes a file and rank 0 looks
// whether it sees them all. Collective; all processes throw the same, or none does. Nothing is returned to
// the others.
std::optional<File> make_ready(const SaveFolder& folder, World& world);

// "rank 3 on node-1".
std::string process_name(const World& world, int rank);

}  // namespace shardscope::trainer
