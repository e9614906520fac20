// shardscope-trace: analyses traces. Results go to standard output, errors (one sentence) to standard error.
// Exit status: 0 success, 1 the work failed, 2 the command line is wrong.
//
// The command line is made from the table of commands (verb.h); this is the only source of the tool that
// includes CLI11.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "shardscope/version.h"
#include "traces/cli/long_work.h"
#include "traces/cli/verb.h"
#include "traces/report/report.h"
#include "traces/report/text_table.h"
#include "traces/schema/schema.h"
#include "traces/store/sqlite/query.h"

namespace {

using namespace shardscope::traces;
using namespace shardscope::traces::cli;

int complain(const std::string& what, int status) {
    fmt::print(stderr, "shardscope-trace: {}\n", report::printable(what));
    return status;
}

class CommandOptions : public Options {
  public:
    CommandOptions(CLI::App& app, Inputs& inputs) : app_(app), inputs_(inputs) {}

    const bool& flag(const std::string& name, const std::string& help) override {
        auto& value = add<bool>(false);
        app_.add_flag(name, value, help);
        return value;
    }
    const std::string& text(const std::string& name, const std::string& value,
                            const std::string& help) override {
        return option<std::string>(name, {}, value, help);
    }
    const std::string& required_text(const std::string& name, const std::string& value,
                                     const std::string& help) override {
        const std::string& given = text(name, value, help);
        last_->required();
        return given;
    }
    const std::vector<std::string>& repeated_text(const std::string& name, const std::string& value,
                                                  const std::string& help) override {
        const auto& given = option<std::vector<std::string>>(name, {}, value, help);
        last_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        return given;
    }
    const double& number(const std::string& name, double otherwise, const std::string& value,
                         const std::string& help) override {
        return option<double>(name, otherwise, value, help);
    }
    const std::optional<std::size_t>& count(const std::string& name, const std::string& value,
                                            const std::string& help) override {
        return option<std::optional<std::size_t>>(name, {}, value, help);
    }
    void files(const std::string& name, const std::string& help, int least, int most) override {
        app_.add_option(name, inputs_.files, help)->required()->expected(least, most > 0 ? most : -1);
        files_ = name;
    }
    const std::vector<std::string>& arguments(const std::string& name, const std::string& value,
                                              const std::string& help) override {
        const auto& given = option<std::vector<std::string>>(name, {}, value, help);
        last_->expected(0, -1);
        return given;
    }
    void describe_files(const std::string& help, int least) override {
        app_.get_option(files_)->description(help)->expected(least, -1);
    }
    void excludes(const std::string& option, const std::string& other) override {
        app_.get_option(option)->excludes(app_.get_option(other));
    }
    void needs(const std::string& option, const std::string& other) override {
        app_.get_option(option)->needs(app_.get_option(other));
    }
    void footer(const std::string& text) override { app_.footer(text); }
    void reading() override {
        app_.add_flag("--partial", inputs_.partial, "Read the intact part of a damaged file");
        app_.add_option("--max-size", inputs_.max_size,
                        "Largest size to which a compressed file may expand (256G)")
            ->type_name("BYTES");
    }
    void times() override {
        app_.add_option("--step", inputs_.selection.step, "Only these steps, including the last")
            ->type_name("A:B");
        app_.add_option("--range", inputs_.selection.range,
                        "Only this range of time since the start of the capture; in ns, or with us, ms, s "
                        "(10ms:20ms)")
            ->type_name("A:B");
    }
    void rank() { app_.add_option("--rank", inputs_.selection.rank, "Only this rank")->type_name("R"); }

  private:
    using Value =
        std::variant<bool, double, std::string, std::vector<std::string>, std::optional<std::size_t>>;
    template <typename T>
    T& add(T value) {
        return std::get<T>(values_.emplace_back(std::move(value)));
    }
    template <typename T>
    const T& option(const std::string& name, T otherwise, const std::string& value, const std::string& help) {
        T& given = add<T>(std::move(otherwise));
        last_ = app_.add_option(name, given, help)->type_name(value);
        return given;
    }

    CLI::App& app_;
    Inputs& inputs_;
    std::deque<Value> values_;  // a deque: its elements never move
    CLI::Option* last_ = nullptr;
    std::string files_;
};

class CommandLine {
  public:
    CommandLine()
        : app_(
              "Analyses traces. A trace is a file of Shardscope, an SQLite export of Nsight Systems, Kineto "
              "or\n"
              "Chrome JSON of PyTorch's profiler, a memory snapshot or a flight recorder's dump of PyTorch;\n"
              "plain or compressed with gzip.",
              "shardscope-trace") {
        app_.set_version_flag(
            "--version",
            fmt::format("shardscope-trace {} (schema {})", shardscope::kVersion, schema::kSchemaVersion),
            "Print the version of the tool and of the schema, and exit");
        app_.require_subcommand(1);
        app_.footer(
            "Exit status: 0 done, 1 a failure of the work, 2 a wrong command line.\n"
            "COMMAND --help explains each command.");
        for (const Verb& verb : verb_table()) add(verb);
    }

    int run(int argc, char** argv) {
        check_verb(argc, argv);
        try {
            app_.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            if (error.get_exit_code() == 0) return app_.exit(error);  // --help, --version
            throw UsageError(fmt::format("{}; run shardscope-trace --help", error.what()));
        }
        inputs_.format = parse_format(format_);
        const std::string name = app_.get_subcommands().front()->get_name();
        return std::find_if(commands_.begin(), commands_.end(),
                            [&](const Command& command) { return name == command.name; })
            ->work(inputs_);
    }

  private:
    struct Command {
        std::string name;
        std::unique_ptr<CommandOptions> options;
        Work work;
    };

    void add(const Verb& verb) {
        CLI::App* app = app_.add_subcommand(verb.name, verb.help);
        app->footer("");
        if (verb.prints)
            app->add_option("--format", format_, "How to print it (table)")->type_name("table|json|csv");
        auto options = std::make_unique<CommandOptions>(*app, inputs_);
        if (verb.reads != Reads::what_it_declares) {
            options->files(
                "FILE", "The trace, of any kind; several files, or a folder, are the ranks of one job", 1, 0);
            options->reading();
        }
        if (verb.reads == Reads::selection) {
            options->rank();
            options->times();
            options->footer(report::result_keys(verb.name));
        }
        Work work = verb.declare(*options);
        commands_.push_back({verb.name, std::move(options), std::move(work)});
    }

    // CLI11 would only say that a subcommand is missing.
    void check_verb(int argc, char** argv) const {
        const auto is = [&](const Verb& verb) { return argv[1] == std::string_view(verb.name); };
        const auto table = verb_table();
        if (argc > 1 && (argv[1][0] == '-' || std::any_of(table.begin(), table.end(), is))) return;
        std::string names;
        for (const Verb& verb : table) names += (names.empty() ? "" : ", ") + std::string(verb.name);
        throw UsageError(argc > 1 ? fmt::format("{} is not a command; use one of {}", argv[1], names)
                                  : fmt::format("there is no command; use one of {}", names));
    }

    CLI::App app_;
    Inputs inputs_;
    std::string format_ = "table";
    std::vector<Command> commands_;
};

}  // namespace

int main(int argc, char** argv) {
    try {
        const int status = CommandLine().run(argc, argv);
        if (std::fflush(stdout) != 0)
            return complain("standard output cannot be written; check where it goes", kFailed);
        return status;
    } catch (const UsageError& error) {
        return complain(error.what(), kWrongUse);
    } catch (const store::QueryError& error) {
        return complain(error.what(), kWrongUse);
    } catch (const merge::Cancelled& stopped) {
        const int status = LongWork::stopped_status();
        return complain(stopped.what(), status != 0 ? status : kFailed);
    } catch (const std::exception& error) {
        return complain(error.what(), kFailed);
    }
}
