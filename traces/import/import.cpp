#include "traces/import/import.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/import/importer_table.h"
#include "traces/import/inputs.h"
#include "traces/import/overlapped_sink.h"
#include "traces/store/apart.h"
#include "traces/store/sqlite/temporary_file.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::importer {

namespace fs = std::filesystem;

namespace {

constexpr double kShareOfReading = 0.7;  // of the work on one file; the rest is sorting and indexing
constexpr double kShareOfParts = 0.7;    // of the work on several files; the rest is merging

// The folder of the parts while they are written, next to the output; removed by the destructor.
class WorkFolder {
  public:
    explicit WorkFolder(const std::string& output) {
        std::error_code ignored;
        const std::string target =
            fs::exists(output, ignored) ? fs::canonical(output, ignored).string() : output;
        store::remove_left_ones(target, "import");
        path_ = store::unfinished_name(target, "import");
        if (::mkdir(path_.c_str(), S_IRWXU) != 0) {
            const int reason = errno;
            throw store::StoreError(
                fmt::format("{} cannot be created: {}; choose another path", path_, std::strerror(reason)));
        }
    }
    ~WorkFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;

    // Each file is in a folder of its own, under its own name, which the merged file records.
    std::string place(std::size_t number, const std::string& input) const {
        const std::string folder = fmt::format("{}/{}", path_, number);
        std::error_code error;
        fs::create_directory(folder, error);
        if (error) throw store::StoreError(fmt::format("{} cannot be created: {}", folder, error.message()));
        return folder + "/" + fs::path(input).filename().string();
    }

  private:
    std::string path_;
};

merge::WorkOptions part_of(const merge::WorkOptions& work, double from, double size) {
    merge::WorkOptions part{.cancel = work.cancel, .progress = {}};
    if (work.progress)
        part.progress = [&work, from, size](double share) { work.progress(from + size * share); };
    return part;
}

class ImportRun {
  public:
    ImportRun(const ImportToOptions& options, const merge::WorkOptions& work)
        : options_(options), work_(work) {}

    ImportResult run() {
        const std::vector<InputFile> files = list_inputs(options_.inputs);
        for (const InputFile& file : files) store::check_apart({file.path}, options_.output);
        store::DatabaseWriter::check_output(options_.output, options_.overwrite);
        const WorkFolder folder(options_.output);
        const bool several = files.size() > 1;
        std::vector<std::string> parts;
        std::vector<std::unique_ptr<KnownFile>> databases;
        for (std::size_t i = 0; i < files.size(); ++i) {
            const double size = (several ? kShareOfParts : 1.0) / static_cast<double>(files.size());
            const merge::WorkOptions work = part_of(work_, size * static_cast<double>(i), size);
            auto file = std::make_unique<KnownFile>(open(files[i].path, work));
            if (file->is_loaded_as_it_is()) {
                parts.push_back(file->database());
                result_.files.push_back({.file = files[i].path, .format = file->importer().name});
                databases.push_back(std::move(file));
                continue;
            }
            parts.push_back(folder.place(i, files[i].path));
            import_one(std::move(file), files[i], several, parts.back(), work);
        }
        if (several || !databases.empty()) {
            merge(parts, files);
        } else {
            publish(parts.front());
        }
        return std::move(result_);
    }

  private:
    Input open(const std::string& path, const merge::WorkOptions& work) const {
        Input input =
            Input::open(path, {.max_bytes = options_.max_bytes, .work = part_of(work, 0, kShareOfReading)});
        input.set_cut_is_end(options_.partial);  // also if the file is cut before its format is known
        return input;
    }

    void import_one(std::unique_ptr<KnownFile> known, const InputFile& file, bool several,
                    const std::string& part, const merge::WorkOptions& work) {
        FileRequest request{.rank = file.rank, .one_of_several = several, .partial = options_.partial};
        for (;;) {
            FileFacts facts;
            {
                store::DatabaseWriter writer({.path = part, .overwrite = true, .on_this_machine = false});
                OverlappedSink sink(writer);
                facts = known->read(sink, request);
                sink.finish();
                if (!facts.rank || *facts.rank == facts.rows_rank || *facts.rank == request.rank) {
                    writer.set_start_utc_ns(facts.start_utc_ns);
                    store::FinalizeOptions finalize{.cancel = work.cancel, .progress = {}};
                    if (work.progress) {
                        finalize.progress = [&](double share) {
                            work.progress(kShareOfReading + (1 - kShareOfReading) * share);
                        };
                    }
                    const store::FinalizeResult finished = writer.finish(facts.last_ns, 0, finalize);
                    if (finished.outcome == store::FinalizeResult::Outcome::cancelled)
                        throw merge::Cancelled("it was stopped; nothing was written");
                    result_.files.push_back({.file = file.path,
                                             .format = known->importer().name,
                                             .bytes = static_cast<std::int64_t>(known->input().offset()),
                                             .partial = facts.partial});
                    if (facts.partial)
                        result_.notes.push_back(
                            fmt::format("{} is damaged; the intact part was kept (shardscope-trace info says "
                                        "what is missing)",
                                        file.path));
                    return;
                }
            }
            request.rank = *facts.rank;  // known only after the events: read the file again
            known = std::make_unique<KnownFile>(open(file.path, work));
        }
    }

    // `text` with the paths of parts replaced by those of the input files, which the user knows.
    std::string told(std::string text, const std::vector<std::string>& parts,
                     const std::vector<InputFile>& files) const {
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (parts[i] == files[i].path) continue;
            for (auto at = text.find(parts[i]); at != std::string::npos;
                 at = text.find(parts[i], at + files[i].path.size()))
                text.replace(at, parts[i].size(), files[i].path);
        }
        return text;
    }

    void merge(const std::vector<std::string>& parts, const std::vector<InputFile>& files) {
        try {
            result_.merged =
                merge_traces({.inputs = parts, .output = options_.output, .overwrite = options_.overwrite},
                             part_of(work_, kShareOfParts, 1 - kShareOfParts));
        } catch (const merge::Cancelled&) {
            throw;
        } catch (const store::StoreError& error) {
            throw store::StoreError(told(error.what(), parts, files));
        }
        for (std::size_t i = 0; i < files.size(); ++i) result_.merged.parts[i].file = files[i].path;
        for (const std::string& note : result_.merged.notes)
            result_.notes.push_back(told(note, parts, files));
    }

    void publish(const std::string& part) const {
        store::DatabaseWriter::check_output(options_.output, options_.overwrite);
        std::error_code error;
        const bool exists = fs::exists(options_.output, error);
        const std::string target = exists ? fs::canonical(options_.output, error).string() : options_.output;
        store::rename_database(part, target, true);
    }

    const ImportToOptions& options_;
    const merge::WorkOptions& work_;
    ImportResult result_;
};

}  // namespace

ImportResult import_files(const ImportToOptions& options, const merge::WorkOptions& work) {
    return ImportRun(options, work).run();
}

}  // namespace shardscope::traces::importer
