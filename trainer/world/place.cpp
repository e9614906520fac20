#include "trainer/world/place.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "trainer/world/node_list.h"
#include "trainer/world/own_launcher.h"

namespace shardscope::trainer::world {

namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kLastPort = 65535;

// Reads the variables of an Environment. A variable that is set to an empty text counts as not set.
class Variables {
  public:
    explicit Variables(const Environment& environment) : environment_(environment) {}

    std::string text(const char* name) const {
        const char* value = environment_(name);
        return value == nullptr ? "" : value;
    }
    bool has(const char* name) const { return !text(name).empty(); }
    // Its value as a number from `least` to `most`.
    int number(const char* name, int least, int most) const {
        const std::string value = text(name);
        const std::optional<int> result = traces::schema::number_of<int>(value);
        if (!result || *result < least || *result > most) {
            throw WorldError(fmt::format("{} is \"{}\" in the environment and must be a number from {} to {}",
                                         name, value, least, most));
        }
        return *result;
    }
    int number_or(const char* name, int least, int most, int otherwise) const {
        return has(name) ? number(name, least, most) : otherwise;
    }
    // Requires none or all of the names to be set; returns whether they are.
    bool all_or_none(std::string_view launcher, std::initializer_list<const char*> names) const {
        std::string there, missing;
        for (const char* name : names) {
            std::string& list = has(name) ? there : missing;
            list += list.empty() ? name : std::string(", ") + name;
        }
        if (!there.empty() && !missing.empty()) {
            throw WorldError(fmt::format(
                "{} set in the environment without {}: a process of {} has them all; unset the "
                "former to run alone",
                there.find(',') == std::string::npos ? there + " is" : there + " are", missing, launcher));
        }
        return !there.empty();
    }

  private:
    const Environment& environment_;
};

void set_rank(Place& place, const Variables& variables, const char* rank, const char* ranks) {
    place.ranks = variables.number(ranks, 1, kMostRanks);
    place.rank = variables.number(rank, 0, kMostRanks - 1);
    if (place.rank >= place.ranks) {
        throw WorldError(fmt::format("{}={} and {}={} contradict each other: ranks count from 0", rank,
                                     place.rank, ranks, place.ranks));
    }
}

// `rank` and `ranks` among those of the host; a launcher that sets neither has started one process on each
// host.
void set_local_rank(Place& place, const Variables& variables, const char* rank, const char* ranks) {
    if (!variables.all_or_none(name(place.launcher), {rank, ranks})) return;
    place.local_ranks = variables.number(ranks, 1, kMostRanks);
    place.local_rank = variables.number(rank, 0, kMostRanks - 1);
    if (place.local_rank >= place.local_ranks || place.local_ranks > place.ranks) {
        throw WorldError(fmt::format("{}={} and {}={} contradict each other or the {} ranks of the job", rank,
                                     place.local_rank, ranks, place.local_ranks, place.ranks));
    }
}

void set_token(Place& place, const Variables& variables, const std::string& otherwise) {
    place.token_is_guessable = !variables.has(kTokenVariable);
    place.token = place.token_is_guessable ? otherwise : variables.text(kTokenVariable);
}

// Whether a text has the form of a random UUID (RFC 9562, version 4), which torchrun --standalone makes.
bool is_random_uuid(std::string_view text) {
    constexpr std::string_view kForm = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
    return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
        return form == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == form;
    });
}

std::optional<Place> own_place(const Variables& variables) {
    if (!variables.all_or_none("run.processes",
                               {kRankVariable, kRanksVariable, kMasterVariable, kPortVariable})) {
        return std::nullopt;
    }
    Place place;
    place.launcher = Launcher::own;
    set_rank(place, variables, kRankVariable, kRanksVariable);
    place.local_rank = place.rank;  // all are on one machine
    place.local_ranks = place.ranks;
    place.master = variables.text(kMasterVariable);
    place.port = variables.number(kPortVariable, 1, kLastPort);
    if (place.rank == 0) place.listen_fd = variables.number_or(kListenVariable, 0, 1 << 30, -1);
    set_token(place, variables, "");
    return place;
}

std::optional<Place> torchrun_place(const Variables& variables) {
    if (!variables.all_or_none("torchrun", {"RANK", "WORLD_SIZE"})) return std::nullopt;
    Place place;
    place.launcher = Launcher::torchrun;
    set_rank(place, variables, "RANK", "WORLD_SIZE");
    set_local_rank(place, variables, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
    if (place.ranks == 1) return place;
    if (!variables.has("MASTER_ADDR") || !variables.has("MASTER_PORT")) {
        throw WorldError(
            fmt::format("RANK and WORLD_SIZE are set in the environment without MASTER_ADDR and MASTER_PORT, "
                        "which say where the {} processes meet; start them with torchrun, or set all four",
                        place.ranks));
    }
    place.master = variables.text("MASTER_ADDR");
    place.port = variables.number("MASTER_PORT", 1, kLastPort);
    set_token(place, variables,
              fmt::format("torchrun {} {} {}:{}", variables.text("TORCHELASTIC_RUN_ID"),
                          variables.text("TORCHELASTIC_RESTART_COUNT"), place.master, place.port));
    if (is_random_uuid(variables.text("TORCHELASTIC_RUN_ID"))) place.token_is_guessable = false;
    // torchrun's agent listens on MASTER_PORT itself.
    const std::string agent = variables.text("TORCHELASTIC_USE_AGENT_STORE");
    if ((agent == "True" || agent == "1") && place.port < kLastPort) ++place.port;
    return place;
}

std::optional<Place> mpirun_place(const Variables& variables) {
    Place place;
    place.launcher = Launcher::mpirun;
    if (variables.all_or_none("mpirun", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"})) {
        set_rank(place, variables, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
        set_local_rank(place, variables, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
    } else if (variables.all_or_none("mpirun", {"PMI_RANK", "PMI_SIZE"})) {  // MPICH, Intel MPI
        set_rank(place, variables, "PMI_RANK", "PMI_SIZE");
        if (variables.has("MPI_LOCALNRANKS"))
            set_local_rank(place, variables, "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
    } else {
        return std::nullopt;
    }
    std::string job = variables.text("PMIX_NAMESPACE");
    if (job.empty()) job = variables.text("OMPI_MCA_ess_base_jobid");
    set_token(place, variables, job.empty() ? "" : "mpirun " + job);
    if (variables.all_or_none("mpirun", {"MASTER_ADDR", "MASTER_PORT"})) {
        place.master = variables.text("MASTER_ADDR");
        place.port = variables.number("MASTER_PORT", 1, kLastPort);
    }
    return place;
}

// The step of a Slurm job in which srun started this process. A batch script and the shell of salloc have the
// job's variables, SLURM_PROCID and SLURM_NTASKS among them, but no step, or a number that Slurm reserves for
// them.
std::optional<std::uint32_t> slurm_step(const Variables& variables) {
    constexpr std::uint32_t kFirstReserved = 0xFFFFFFF0U;
    if (!variables.has("SLURM_PROCID")) return std::nullopt;
    std::optional<std::uint32_t> step =
        traces::schema::number_of<std::uint32_t>(variables.text("SLURM_STEP_ID"));
    if (!step) step = traces::schema::number_of<std::uint32_t>(variables.text("SLURM_STEPID"));
    return step && *step < kFirstReserved ? step : std::nullopt;
}

// A port that follows from the job and the step, so that all tasks know it: below the ports that systems
// assign dynamically, with kPorts for each step.
int slurm_port(std::uint32_t job, std::uint32_t step) {
    constexpr std::uint32_t kFirst = 16000, kLast = 32000;
    return static_cast<int>(kFirst + (job * 17U + step) % ((kLast - kFirst) / kPorts) * kPorts);
}

std::optional<Place> srun_place(const Variables& variables) {
    const std::optional<std::uint32_t> step = slurm_step(variables);
    if (!step) return std::nullopt;
    Place place;
    place.launcher = Launcher::srun;
    const char* ranks = variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    if (!variables.has(ranks)) {
        throw WorldError(
            "SLURM_PROCID is set in the environment without SLURM_NTASKS: a task of srun has both; unset "
            "SLURM_STEP_ID to run alone");
    }
    set_rank(place, variables, "SLURM_PROCID", ranks);
    if (place.ranks == 1) return place;
    place.local_rank = variables.number_or("SLURM_LOCALID", 0, place.ranks - 1, 0);
    const int node = variables.number_or("SLURM_NODEID", 0, kMostRanks, 0);
    std::optional<int> local = tasks_on_node(variables.text("SLURM_STEP_TASKS_PER_NODE"), node);
    if (!local) local = tasks_on_node(variables.text("SLURM_NTASKS_PER_NODE"), 0);
    place.local_ranks = local.value_or(place.local_rank + 1);
    if (place.local_rank >= place.local_ranks) {
        throw WorldError(
            fmt::format("SLURM_LOCALID={} contradicts the {} tasks that Slurm says are on this node",
                        place.local_rank, place.local_ranks));
    }
    const std::uint32_t job =
        traces::schema::number_of<std::uint32_t>(variables.text("SLURM_JOB_ID")).value_or(0);
    set_token(place, variables, fmt::format("srun {}.{}", variables.text("SLURM_JOB_ID"), *step));
    const char* nodes = variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
    place.master =
        variables.has("MASTER_ADDR") ? variables.text("MASTER_ADDR") : first_node(variables.text(nodes));
    if (place.master.empty()) {
        throw WorldError(
            fmt::format("{} is \"{}\" in the environment and must list the step's hosts; or set "
                        "MASTER_ADDR to the host of task 0",
                        nodes, variables.text(nodes)));
    }
    place.port = variables.number_or("MASTER_PORT", 1, kLastPort, slurm_port(job, *step));
    return place;
}

bool same_rank(const std::optional<Place>& a, const std::optional<Place>& b) {
    return a && b && a->rank == b->rank && a->ranks == b->ranks;
}

// The place that the innermost launcher sets: the others' variables are inherited. torchrun may run under
// mpirun or srun, one on each host, and mpirun under srun or salloc.
std::optional<Place> innermost_place(const Variables& variables) {
    if (std::optional<Place> own = own_place(variables)) return own;
    std::optional<Place> mpirun = mpirun_place(variables), srun = srun_place(variables);
    // On request, srun also sets MPICH's variables.
    const bool srun_says_both = !variables.has("OMPI_COMM_WORLD_RANK") && !variables.has("MPI_LOCALRANKID");
    if (srun_says_both && same_rank(mpirun, srun)) mpirun.reset();
    std::optional<Place> outer = mpirun ? std::move(mpirun) : std::move(srun);
    if (std::optional<Place> torchrun = torchrun_place(variables)) {
        // RANK and WORLD_SIZE that a user copied from the launcher's variables mean the same place.
        if (!same_rank(torchrun, outer) || variables.has("TORCHELASTIC_RUN_ID")) return torchrun;
    }
    return outer;
}

}  // namespace

const char* name(Launcher launcher) {
    switch (launcher) {
        case Launcher::own:
            return "shardscope-train";
        case Launcher::torchrun:
            return "torchrun";
        case Launcher::mpirun:
            return "mpirun";
        case Launcher::srun:
            return "srun";
    }
    return "";
}

bool is_loopback(const std::string& master) {
    return master == "localhost" || master == "::1" || master.starts_with("127.");
}

std::string token_note(const Place& place) {
    if (!place.token_is_guessable || is_loopback(place.master)) return "";
    return fmt::format(
        "whoever can reach port {} of {} may guess the job's token, since {} carries no secret; set {} to a "
        "random "
        "text on all hosts",
        place.port, place.master, name(place.launcher), kTokenVariable);
}

std::optional<Place> place_from_environment(const Environment& environment) {
    std::optional<Place> place = innermost_place(Variables(environment));
    if (place && place->ranks == 1) return std::nullopt;
    return place;
}

}  // namespace shardscope::trainer::world
