#include "trainer/disk/disk_io.h"

namespace shardscope::trainer::disk {

std::unique_ptr<DiskIo> make_uring_io() {
    return nullptr;
}

}  // namespace shardscope::trainer::disk
