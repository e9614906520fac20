// Runs a real program as a user would and returns its output.
#pragma once

#include <string>
#include <vector>

namespace shardscope::tools {

struct Outcome {
    int status = -1;  // exit status; 128 + n if signal n ended it
    std::string out, err;
};

// `command[0]` is a path, or a name looked up in PATH. Standard input is empty. Fails the test by an
// exception if the program cannot be started.
Outcome run_command(const std::vector<std::string>& command);

// A new private folder, which is removed with its content at the end of the scope.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

}  // namespace shardscope::tools
