// Handles SIGINT (Ctrl-C) and SIGTERM during a run. The first is a request: the run ends after its step,
// saves a checkpoint if configured to, and finishes its trace. The second ends the process immediately, as
// without a handler; a parent of rank processes must first end those (Second::is_counted).
#pragma once

#include <atomic>
#include <string>

namespace shardscope::trainer::cli {

// Listens from construction to destruction; only one object may exist at a time.
class StopSignals {
  public:
    enum class Second : bool { ends, is_counted };
    // `stop` (may be null) is set by the first signal.
    explicit StopSignals(std::atomic<bool>* stop = nullptr, Second second = Second::ends);
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    // The signal that arrived first, 0 if none did; also after the object is gone.
    static int received();
    // The number of signals that arrived.
    static int count();
    // "SIGINT" or "SIGTERM".
    static const char* name(int signal);
};

// During its lifetime, a signal that ends the process immediately first prints this sentence: where the
// recording is, and how to finish it. Only one may exist at a time, with or without a StopSignals.
class LastWords {
  public:
    explicit LastWords(const std::string& sentence);
    ~LastWords();
    LastWords(const LastWords&) = delete;
    LastWords& operator=(const LastWords&) = delete;

  private:
    const std::string line_;
    const bool listens_;  // this object listens, as no StopSignals does
};

}  // namespace shardscope::trainer::cli
