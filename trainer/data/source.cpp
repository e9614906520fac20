// The text, its vocabulary and its parts; see source.h.
#include "trainer/data/source.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "trainer/data/bpe.h"
#include "trainer/data/bpe_training.h"
#include "trainer/data/images.h"
#include "trainer/data/masked.h"
#include "trainer/data/picture_cache.h"
#include "trainer/data/synthetic.h"
#include "trainer/data/text_files.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {
namespace {

std::shared_ptr<const Tokenizer> train_tokenizer(const TextFiles& text, int vocabulary) {
    if (vocabulary <= kByteTokens) {
        throw DataError(
            "model.vocabulary",
            fmt::format("{} is too small for a vocabulary of byte pairs, which has the 256 bytes and "
                        "more; set it to 257 or more, or to 0 for bytes",
                        vocabulary));
    }
    std::vector<std::string> files;
    files.reserve(static_cast<std::size_t>(text.files()));
    for (int file = 0; file < text.files(); ++file) files.push_back(text.file(file).whole());
    const std::vector<std::string_view> texts(files.begin(), files.end());
    std::vector<Merge> merges = learn_merges(texts, vocabulary - kByteTokens);
    const int made = kByteTokens + static_cast<int>(merges.size());
    if (made < vocabulary) {
        throw DataError("model.vocabulary",
                        fmt::format("{} is more than {} gives: {}; set it to {}, or name a longer text",
                                    vocabulary, text.path(),
                                    made == kByteTokens
                                        ? std::string("no pair of bytes occurs twice in its words")
                                        : fmt::format("no pair occurs twice any more after {} entries", made),
                                    made == kByteTokens ? "0 (bytes)" : fmt::format("at most {}", made)));
    }
    return std::make_shared<BpeTokenizer>(std::move(merges));
}

// The division of a text into parts, with its checks and their messages.
struct Parts {
    const TextFiles& text;
    const TextSettings& settings;
    const char* unit;  // "bytes" or "tokens"
    std::int64_t total = 0, validation = 0, test = 0;

    std::int64_t window() const { return std::int64_t{settings.context} + 1; }
    std::int64_t trained_on() const { return total - validation - test; }

    void check_whole() const {
        if (text.bytes() == 0) {
            throw DataError("data.path",
                            fmt::format("{} is empty; name a text of at least model.context + 1 = {} {}",
                                        settings.path, window(), unit));
        }
        if (total < window()) {
            throw DataError(
                "data.path",
                fmt::format("{} has {} {}, and a sample needs model.context + 1 = {}; name a longer "
                            "text or make model.context smaller",
                            settings.path, total, unit, window()));
        }
    }

    void check_each() const {
        check_held_out("data.validation", settings.validation, validation);
        check_held_out("data.test", settings.test, test);
        if (trained_on() < window()) {
            throw DataError(
                settings.validation > 0 ? "data.validation" : "data.test",
                fmt::format("{} of the {} {} of {} {} to train on, and a sample needs "
                            "model.context + 1 = {}; lower it, name a longer text or make "
                            "model.context smaller",
                            settings.validation > 0 ? settings.validation : settings.test, total, unit,
                            settings.path,
                            settings.validation > 0 && settings.test > 0
                                ? fmt::format("and data.test = {} leave {}", settings.test, trained_on())
                                : fmt::format("leaves {}", trained_on()),
                            window()));
        }
    }

    void check_held_out(const char* key, double share, std::int64_t part) const {
        if (share == 0 || part >= window()) return;
        throw DataError(key,
                        fmt::format("{} of the {} {} of {} holds out {}, and a sample needs model.context + "
                                    "1 = {}; raise it, name a longer text or make model.context smaller",
                                    share, total, unit, settings.path, part, window()));
    }
};

TextSource divided(const TextSettings& settings) {
    const auto text = std::make_shared<TextFiles>(settings.path);
    const bool trains = !settings.tokenizer && settings.vocabulary != 0;
    Parts parts{*text, settings, "bytes", text->bytes()};
    parts.check_whole();  // before a vocabulary is trained on too little text: a token is at least one byte

    TextSource source;
    source.tokenizer = settings.tokenizer;
    if (trains) source.tokenizer = train_tokenizer(*text, settings.vocabulary);
    if (!source.tokenizer) source.tokenizer = std::make_shared<ByteTokenizer>();

    std::shared_ptr<const TokenSequence> tokens;
    if (source.tokenizer->vocabulary() == kByteTokens) {  // then every token is its byte
        tokens = std::make_shared<ByteTokens>(text);
    } else {
        tokens = std::make_shared<EncodedTokens>(*text, *source.tokenizer);
        parts.unit = "tokens";
        parts.total = tokens->size();
        parts.check_whole();
    }
    parts.validation = std::llround(settings.validation * static_cast<double>(parts.total));
    parts.test = std::llround(settings.test * static_cast<double>(parts.total));
    parts.check_each();
    source.train = std::make_unique<TextDataset>(tokens, TokenRange{0, parts.trained_on()}, settings.context,
                                                 SampleOrder::shuffled, settings.seed);
    const auto held_out = [&](std::int64_t first, std::int64_t count) {
        return count == 0 ? nullptr
                          : std::make_unique<TextDataset>(tokens, TokenRange{first, count}, settings.context,
                                                          SampleOrder::as_in_text, settings.seed);
    };
    source.validation = held_out(parts.trained_on(), parts.validation);
    source.test = held_out(parts.trained_on() + parts.validation, parts.test);
    return source;
}

// The size of the text's vocabulary within one whose last token is the mask; 0 means bytes.
int text_tokens(int vocabulary) {
    return vocabulary <= kByteTokens + 1 ? 0 : vocabulary - 1;
}

DataSource prepared_images(const job::Job& job) {
    const job::DataSection& data = job.data;
    const Preparation preparation(data);
    const auto budget = std::make_shared<std::atomic<std::int64_t>>(std::int64_t{data.cache} << 20);
    const auto opened = [&](const char* key, const std::string& path) -> std::shared_ptr<const ImageFiles> {
        std::shared_ptr<const ImageFiles> files = open_images(key, path, data.classes);
        if (data.cache == 0) return files;
        if (!files->decodes()) {
            if (path != data.path) return files;
            throw DataError("data.cache",
                            fmt::format("the images of {} are not decoded: they are in memory as "
                                        "they are; omit the key",
                                        path));
        }
        return std::make_shared<PictureCache>(std::move(files), budget);
    };
    const std::shared_ptr<const ImageFiles> files = opened("data.path", data.path);
    const auto share = [&](double of) { return std::llround(of * static_cast<double>(files->images())); };
    const std::int64_t validation = share(data.validation), test = share(data.test);
    const std::int64_t left = files->images() - validation - test;
    const auto some = [&](const std::shared_ptr<const ImageFiles>& of, const ImageRange& range, bool trains) {
        return std::make_unique<PreparedImages>(of, range, preparation, job.run.seed, trains);
    };
    DataSource source;
    for (const auto& [key, of, part] :
         {std::tuple{"data.validation", data.validation, validation}, {"data.test", data.test, test}}) {
        if (of > 0 && (part == 0 || left <= 0)) {
            throw DataError(key, part == 0
                                     ? fmt::format("{} of {} images is less than one image; raise it", of,
                                                   files->images())
                                     : fmt::format("no image is left to train on: data.validation is {} and "
                                                   "data.test {} of {} images; lower one of them",
                                                   data.validation, data.test, files->images()));
        }
    }
    source.train = some(files, {validation + test, left}, true);
    const auto held_out = [&](const char* key, const std::string& path,
                              const ImageRange& range) -> std::unique_ptr<Dataset> {
        if (path.empty()) return range.count == 0 ? nullptr : some(files, range, false);
        const std::shared_ptr<const ImageFiles> other = opened(key, path);
        if (other->class_names() != files->class_names()) {
            throw DataError(key, fmt::format("{} has other classes than {}, or in another order; name images "
                                             "of the same classes",
                                             path, data.path));
        }
        return some(other, {0, other->images()}, false);
    };
    if (std::error_code error; !data.test_path.empty() && !data.validation_path.empty() &&
                               std::filesystem::equivalent(data.validation_path, data.test_path, error)) {
        throw DataError(
            "data.test_path",
            fmt::format("{} is also what data.validation_path names, by which a run is chosen; name "
                        "other images to test on",
                        data.test_path));
    }
    source.validation = held_out("data.validation_path", data.validation_path, {0, validation});
    source.test = held_out("data.test_path", data.test_path, {validation, test});
    return source;
}

}  // namespace

std::int64_t whole_batches(const Dataset& validation, int ranks, int batch) {
    const std::int64_t rows = std::int64_t{ranks} * batch;
    if (validation.samples() < rows) {
        throw DataError(
            "data.batch",
            fmt::format("there {} {} held-out sample{}, and one batch of all {} rank{} takes {} × {} = {}; "
                        "lower it, or hold out more (data.validation, data.test)",
                        validation.samples() == 1 ? "is" : "are", validation.samples(),
                        validation.samples() == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s", ranks, batch,
                        rows));
    }
    return validation.samples() / rows;
}

TextSource open_text(const TextSettings& settings) {
    try {
        return divided(settings);
    } catch (const std::bad_alloc&) {
        throw DataError("data.path",
                        fmt::format("the tokens of {} do not fit into memory; name a smaller text, or "
                                    "use bytes (model.vocabulary = 0), which are not kept in memory",
                                    settings.path));
    }
}

DataSource open_data(const job::Job& job, std::shared_ptr<const Tokenizer> tokenizer) {
    try {
        if (job.data.type == job::DataType::text) {
            TextSettings settings;
            settings.path = job.data.path;
            settings.seed = job.run.seed;
            settings.context = job.model.context;
            const bool masked = job.model.type == job::ModelType::bert;
            settings.vocabulary = masked ? text_tokens(job.model.vocabulary) : job.model.vocabulary;
            settings.validation = job.data.validation;
            settings.test = job.data.test;
            settings.tokenizer = std::move(tokenizer);
            TextSource source = open_text(settings);
            const Masking masking{job.model.context, source.tokenizer->vocabulary(), job.run.seed};
            const auto part = [&](std::unique_ptr<TextDataset> text) -> std::unique_ptr<Dataset> {
                if (!masked || !text) return text;
                return std::make_unique<MaskedDataset>(std::move(text), masking);
            };
            return {source.tokenizer, part(std::move(source.train)), part(std::move(source.validation)),
                    part(std::move(source.test))};
        }
        if (job.reads_images() && !job.data.path.empty()) return prepared_images(job);
        if (job.reads_images()) {
            return {nullptr,
                    std::make_unique<SyntheticImages>(job.run.seed, job.data.image, job.data.classes),
                    nullptr, nullptr};
        }
        if (job.data.validation > 0) {
            throw DataError("data.validation",
                            "holds out a share of a text, and data.type is \"synthetic\"; omit it, or set "
                            "data.type to \"text\"");
        }
        return {nullptr, std::make_unique<SyntheticDataset>(job.run.seed, job.model.width), nullptr, nullptr};
    } catch (const DataError& error) {
        if (error.key().empty()) throw;
        throw DataError(where(job, error.key()) + error.what());
    }
}

}  // namespace shardscope::trainer::data
