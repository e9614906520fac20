// A command of shardscope-trace: its name, inputs, options and work. Does not include CLI11's headers, which
// cost ten seconds in each source that includes them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/cli/arguments.h"

namespace shardscope::traces::cli {

inline constexpr int kDone = 0, kFailed = 1, kWrongUse = 2;

// Declares the options of one command. The returned reference holds the value once the command line is
// parsed, and lives until the program ends.
class Options {
  public:
    virtual ~Options() = default;

    virtual const bool& flag(const std::string& name, const std::string& help) = 0;
    // `value` is what --help writes after the name, for example "OUT.sqlite".
    virtual const std::string& text(const std::string& name, const std::string& value,
                                    const std::string& help) = 0;
    virtual const std::string& required_text(const std::string& name, const std::string& value,
                                             const std::string& help) = 0;
    virtual const std::vector<std::string>& repeated_text(const std::string& name, const std::string& value,
                                                          const std::string& help) = 0;
    virtual const double& number(const std::string& name, double otherwise, const std::string& value,
                                 const std::string& help) = 0;
    virtual const std::optional<std::size_t>& count(const std::string& name, const std::string& value,
                                                    const std::string& help) = 0;
    // Declares arguments without a name, which go to Inputs::files. `most` 0: any number.
    virtual void files(const std::string& name, const std::string& help, int least, int most) = 0;
    virtual const std::vector<std::string>& arguments(const std::string& name, const std::string& value,
                                                      const std::string& help) = 0;

    // Replaces the description of a command's files, and requires at least that many.
    virtual void describe_files(const std::string& help, int least) = 0;
    virtual void excludes(const std::string& option, const std::string& other) = 0;
    virtual void needs(const std::string& option, const std::string& other) = 0;
    virtual void footer(const std::string& text) = 0;

    // Declare options that go to Inputs: how a file is read (--partial, --max-size), and which part of its
    // time (--step, --range).
    virtual void reading() = 0;
    virtual void times() = 0;
};

// The --top option of kernels, operators and memory --allocations.
const std::optional<std::size_t>& top_option(Options& options);
// `top`: the most rows per rank, 0 for all; nullopt: some rows in a table, all in JSON and CSV.
std::size_t most_rows(const Inputs& inputs, const std::optional<std::size_t>& top);

// A file that a command writes.
struct Output {
    const std::string& path;
    const bool& overwrite;
};
Output trace_output(Options& options);
// Refuses a page to be written that is a file to be read, or that exists without --overwrite.
void check_page(const Inputs& inputs, const std::string& path, bool overwrite);

// The --price-per-device-hour option. check_price() throws UsageError.
const double& price_option(Options& options);
void check_price(double price);

enum class Reads {
    what_it_declares,
    traces,     // FILE...: traces of any kind, opened together
    selection,  // traces limited to a rank, steps or a range of time; --help explains the keys of the result
};

// What a command does; returns the exit status.
using Work = std::function<int(const Inputs&)>;

struct Verb {
    const char* name;
    const char* help;
    Reads reads;
    Work (*declare)(Options&);
    bool prints = true;  // a result, as --format says; false: it writes a page only
};

// The commands in the order of --help.
std::span<const Verb> verb_table();

void print(const std::string& text);                          // to standard output
void print_notes(const std::vector<std::string>& sentences);  // to standard error

}  // namespace shardscope::traces::cli
