// A job gives the same results whether its ranks are processes or threads: for every pair of options that are
// possible together, over TCP, Gloo and MPI. test_process_parity_full.cpp has the whole grid.
#include <cstdlib>

#include "tests/tools/train/process_parity.h"

namespace shardscope::tools {
namespace TEST_FILE {

class ProcessParity : public ::testing::TestWithParam<Grid> {
  protected:
    void SetUp() override {
        if (GetParam().comm == std::string("mpi") && std::system("command -v mpirun > /dev/null 2>&1") != 0)
            GTEST_SKIP() << "no mpirun is installed";
    }
};

TEST_P(ProcessParity, LossesAreThoseOfThreads) {
    expect_parity_with_threads(GetParam());
}

INSTANTIATE_TEST_SUITE_P(OverTcp, ProcessParity,
                         ::testing::Values(Grid{"tcp", 2, "pairs"}, Grid{"tcp", 4, "pairs"},
                                           Grid{"tcp", 4, "ring"}, Grid{"tcp", 4, "onebit_adam"},
                                           Grid{"tcp", 2, "onebit_lamb"}, Grid{"tcp", 4, "local_steps"},
                                           Grid{"tcp", 4, "server"}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OverGloo, ProcessParity,
                         ::testing::Values(Grid{"gloo", 2, "pairs"}, Grid{"gloo", 4, "pairs"},
                                           Grid{"gloo", 4, "ring"}, Grid{"gloo", 2, "onebit_adam"},
                                           Grid{"gloo", 4, "server"}),
                         name_of);
#ifdef SHARDSCOPE_HAS_MPI
INSTANTIATE_TEST_SUITE_P(OverMpi, ProcessParity,
                         ::testing::Values(Grid{"mpi", 2, "pairs"}, Grid{"mpi", 4, "pairs"},
                                           Grid{"mpi", 2, "ring"}, Grid{"mpi", 4, "ring"},
                                           Grid{"mpi", 4, "onebit_adam"}),
                         name_of);
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::tools
