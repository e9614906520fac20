// SIGINT (Ctrl-C) and SIGTERM while a run goes on. The first asks: the run ends after its step, saves where
// it is to save, and finishes its trace. The second ends the process at once, as if nobody listened; but a
// parent of ranks first has to end those.
#pragma once

#include <atomic>
#include <string>

namespace shardscope::trainer {

// Listens from construction to destruction; one at a time.
class StopSignals {
  public:
    enum class Second : bool { ends, is_counted };
    // `stop` (may be null) is set by the first signal.
    explicit StopSignals(std::atomic<bool>* stop = nullptr, Second second = Second::ends);
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    // The signal that came first, 0 if none did; also of one that is gone.
    static int received();
    // How many came.
    static int count();
    // "SIGINT" or "SIGTERM".
    static const char* name(int signal);
};

// While it lives, a signal that ends the process at once first prints this sentence: where what was recorded
// is, and how it is finished. One at a time, beside StopSignals or without.
class LastWords {
  public:
    explicit LastWords(const std::string& sentence);
    ~LastWords();
    LastWords(const LastWords&) = delete;
    LastWords& operator=(const LastWords&) = delete;

  private:
    const std::string line_;
    const bool listens_;  // nobody else does
};

}  // namespace shardscope::trainer
