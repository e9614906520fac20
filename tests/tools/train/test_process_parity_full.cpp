// Every point of the grid of strategies, wraps and options on ranks that are processes.
#include <cstdlib>

#include "tests/tools/train/process_parity.h"

namespace shardscope::tools {
namespace TEST_FILE {

class ProcessParityFull : public ::testing::TestWithParam<Grid> {
  protected:
    void SetUp() override {
        if (GetParam().comm == std::string("mpi") && std::system("command -v mpirun > /dev/null 2>&1") != 0)
            GTEST_SKIP() << "no mpirun is installed";
    }
};

// FULL_SHARD and SHARD_GRAD_OP: 192 points each; NO_SHARD without offload: 96; HYBRID_SHARD on 4 ranks: 192;
// ddp and ZeRO-1, with neither wrap nor prefetch nor limiter nor offload: 8 each.
TEST(ProcessGrid, HasEveryPoint) {
    EXPECT_EQ(trainer::testing::grid_on(2).size(), 192u + 192 + 96 + 8 + 8);
    EXPECT_EQ(trainer::testing::grid_on(4).size(), 192u + 192 + 96 + 192 + 8 + 8);
}

TEST_P(ProcessParityFull, LossesAreThoseOfThreads) {
    expect_parity_with_threads(GetParam());
}

INSTANTIATE_TEST_SUITE_P(OverTcp, ProcessParityFull,
                         ::testing::Values(Grid{"tcp", 2, "grid"}, Grid{"tcp", 4, "grid"}), name_of);
#ifdef SHARDSCOPE_HAS_MPI
INSTANTIATE_TEST_SUITE_P(OverMpi, ProcessParityFull,
                         ::testing::Values(Grid{"mpi", 2, "grid"}, Grid{"mpi", 4, "grid"}), name_of);
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::tools
