// What shardscope-record and the library that it injects share: a private directory, named by an environment
// variable, with one session file (written by the tool) and one record file per process (made by the
// library). Plain data in mapped files; both ends are built from this header and check kRecordFormat.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/base/clock.h"
#include "profiler/base/record.h"

namespace shardscope::profiler {

inline constexpr char kSessionVariable[] = "SHARDSCOPE_SESSION";  // path of the directory
inline constexpr char kSessionFile[] = "session";
inline constexpr char kRecordSuffix[] = ".records";

// The environment variables in which a process may find its rank; the first that has a number counts.
inline constexpr const char* kRankVariables[] = {
    "RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK"};

inline constexpr std::uint64_t kSessionMagic = 0x53455353'44524853;  // "SHRDSSES"
inline constexpr std::uint64_t kProcessMagic = 0x434F5250'44524853;  // "SHRDPROC"

enum class SessionState : std::uint32_t { waiting = 0, recording = 1, stopped = 2 };

// Bits of SessionHeader::sources: what is to be recorded.
inline constexpr std::uint32_t kSourceNvtx = 1;
inline constexpr std::uint32_t kSourceCuda = 2;
inline constexpr std::uint32_t kSourceNccl = 4;
inline constexpr std::uint32_t kSourceWholeGraphs =
    8;  // CUDA graphs as one event each, without their kernels

// The part of the run that is recorded, as each process determines it while the state is `recording`.
enum class WindowKind : std::uint32_t {
    always = 0,
    steps = 1,         // from the start of step first_step to the end of step last_step (both included)
    range = 2,         // while a range of that name is open on any thread
    cuda_profiler = 3  // between cudaProfilerStart() and cudaProfilerStop()
};

struct SessionHeader {
    std::uint64_t magic;
    std::uint32_t format;
    ClockSource clock;
    std::uint64_t max_bytes;  // of one process's record file
    std::atomic<SessionState> state;
    std::uint32_t sources;
    WindowKind window;
    // Ranks that record; no pairs: all. A process without a rank always records.
    std::uint32_t rank_ranges;
    struct RankRange {
        std::int32_t first, last;  // both included
    } ranks[32];
    std::int64_t first_step, last_step;
    // The prefix of the step ranges before their number ("ProfilerStep#" by default), or the named range's
    // name.
    char range_name[256];
};

inline constexpr std::uint32_t kMappedChunkBytes = 64u << 10;
inline constexpr std::size_t kProcessHeaderBytes = 4096;  // then the chunks

struct ProcessHeader {
    std::uint64_t magic;
    std::uint32_t format;
    std::uint32_t pid, parent_pid;
    std::int32_t rank;  // from the launcher's environment, or -1
    std::uint64_t pid_namespace;
    Ticks start_ticks;
    std::uint32_t chunk_bytes, max_chunks;
    ArenaControl control;
    char name[64];                     // of the program, NUL-terminated
    std::atomic<std::uint32_t> ready;  // 1 when all the above is written
};
static_assert(sizeof(ProcessHeader) <= kProcessHeaderBytes);

}  // namespace shardscope::profiler
