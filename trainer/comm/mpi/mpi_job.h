// MPI from MPI_Init to MPI_Finalize.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "trainer/comm/mpi_module.h"

namespace shardscope::trainer::comm::mpi {

// MPI's text for the error `code` of `call`: "MPI_Isend: MPI_ERR_RANK: invalid rank".
std::string describe_error(const char* call, int code);

class MpiJob final : public MpiModule {
  public:
    MpiJob();  // throws std::runtime_error
    ~MpiJob() override;

    int rank() const override { return rank_; }
    int ranks() const override { return ranks_; }
    std::string library() const override { return library_; }
    std::string broadcast(const std::string& from_rank_0) override;
    std::unique_ptr<Wire> wire(const MpiWireOptions& options) override;
    void abandon() override { abandoned_ = true; }

  private:
    int rank_ = 0, ranks_ = 1;
    std::string library_;
    bool abandoned_ = false;
};

}  // namespace shardscope::trainer::comm::mpi
