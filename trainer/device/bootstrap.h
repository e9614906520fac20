// The CUDA module's interface to the other processes of a job, each of which hosts some of its ranks. The
// executor implements it (executor/world_bootstrap.h); tests fake it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::trainer::device {

class Bootstrap {
  public:
    Bootstrap() = default;
    virtual ~Bootstrap() = default;
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;

    virtual int process() const = 0;  // the number of this one, from 0

    // Returns each process's contribution, by process. All processes call it in the same order and wait for
    // each other; throws a std::exception if one of them will not arrive.
    virtual std::vector<std::string> gather(std::string_view mine) = 0;

    // One-way messages. `handler` is called on a thread of the bootstrap, must not block, and may be called
    // until the bootstrap is destroyed.
    using Handler = std::function<void(int from, std::string_view text)>;
    virtual void on(const std::string& topic, Handler handler) = 0;
    virtual void tell(const std::string& topic, std::string_view text) = 0;  // to process 0, also from itself
    virtual void tell_all(const std::string& topic, std::string_view text) = 0;  // process 0 to the others

    // Ends the job on every process, without blocking; of several failures the first counts. `reason`: a
    // clause that can follow "rank 2 ". Each process's Device receives the job's failure through fail().
    virtual void fail(int rank, const std::string& reason) = 0;
    // Throws a std::exception if the job has failed; for use before there is a Device.
    virtual void check() = 0;
};

}  // namespace shardscope::trainer::device
