// Nsight Systems' command-line tool, if it is installed: an independent check of our files.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shardscope::tools {

class NsysTool {
  public:
    // The program that $NSYS names, otherwise the first `nsys` in PATH; nullopt if it does not exist or does
    // not run.
    static std::optional<NsysTool> find();

    // The names of the reports in this version of the tool ("gpukernsum", or "cuda_gpu_kern_sum" in newer
    // ones).
    const std::set<std::string>& reports() const { return reports_; }
    const std::string& version() const { return version_; }

    struct Answer {
        std::string complaint;                       // empty if the tool answered
        std::vector<std::string> columns;            // of the CSV
        std::vector<std::vector<std::string>> rows;  // the CSV's lines, by column
        // The cell of the first row whose last column is `name`; "" if there is none.
        std::string cell(const std::string& name, const std::string& column) const;
    };
    Answer report(const std::string& report, const std::string& trace) const;

  private:
    std::string program_, version_;
    std::set<std::string> reports_;
};

}  // namespace shardscope::tools
