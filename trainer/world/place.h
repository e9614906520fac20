// A process's place in its job, as the launcher (torchrun, mpirun, srun, or shardscope-train itself) sets it
// in the environment. One process is one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace shardscope::trainer::world {

// The processes of a job cannot join; one sentence: what is wrong, what to do.
class WorldError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline constexpr int kPorts = 8;  // tried from Place::port upwards

enum class Launcher : std::uint8_t { own, torchrun, mpirun, srun };  // own: run.processes

struct Place {
    Launcher launcher = Launcher::own;
    int rank = 0, ranks = 1;
    int local_rank = 0, local_ranks = 1;  // among those of its host
    // Where rank 0 listens: a name or an address, or several with commas between them that are tried in turn,
    // and a port; where the port is taken, one of the kPorts from it. Empty and 0: the launcher does not
    // specify them, and MPI has to (mpirun; own_addresses.h).
    std::string master;
    int port = 0;
    int listen_fd = -1;  // rank 0's listening socket where its parent made it (Listener), else -1
    // The secret that only the job's processes should know: SHARDSCOPE_JOB_TOKEN, else the launcher's name of
    // the job.
    std::string token;
    bool token_is_guessable = false;  // it is the launcher's name of the job, which is not a secret
};

// Whether only processes of this machine can mean rank 0 by this name.
bool is_loopback(const std::string& master);

// A sentence for the user where whoever can reach rank 0's port may guess the token; else empty.
std::string token_note(const Place& place);

// The launcher's name in the trace and in messages: "torchrun", "mpirun", "srun"; Launcher::own:
// "shardscope-train".
const char* name(Launcher launcher);

// The value of a variable, null if it is not set: std::getenv, or a test's.
using Environment = std::function<const char*(const char* name)>;

// Nothing: no launcher started this process, or it started one alone. Throws WorldError if variables are
// missing, contradict each other or are not numbers; the message names them.
std::optional<Place> place_from_environment(const Environment& environment);

}  // namespace shardscope::trainer::world
