#include "traces/import/topology/xml_tree.h"

#include <memory>
#include <optional>
#include <type_traits>

#include <expat.h>
#include <fmt/core.h>

#include "traces/store/error.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kMostDepth = 64, kMostElements = 1'000'000, kXmlPiece = std::size_t{1} << 20;

struct FreeParser {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

class TreeBuilder {
  public:
    TreeBuilder(std::string_view text, std::string name)
        : name_(std::move(name)), parser_(XML_ParserCreate("UTF-8")), text_(text) {}

    XmlElement read() {
        XML_SetUserData(parser_.get(), this);
        XML_SetElementHandler(
            parser_.get(),
            [](void* self, const char* name, const char** attributes) {
                static_cast<TreeBuilder*>(self)->begin(name, attributes);
            },
            [](void* self, const char*) { static_cast<TreeBuilder*>(self)->end(); });
        XML_SetStartDoctypeDeclHandler(
            parser_.get(), [](void* self, const char*, const char*, const char*, int) {
                static_cast<TreeBuilder*>(self)->stop("a document type is not allowed");
            });
        while (!text_.empty()) {
            const std::string_view piece = text_.substr(0, kXmlPiece);
            text_.remove_prefix(piece.size());
            const XML_Status status =
                XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), text_.empty() ? 1 : 0);
            if (!fault_.empty()) fail(fault_);
            if (status != XML_STATUS_OK) fail(XML_ErrorString(XML_GetErrorCode(parser_.get())));
        }
        if (!root_) fail("there is no element");
        return std::move(*root_);
    }

  private:
    void begin(const char* name, const char** attributes) {
        if (!fault_.empty()) return;
        if (open_.size() >= kMostDepth) return stop("elements are nested too deeply");
        if (++elements_ > kMostElements) return stop("there are too many elements");
        XmlElement element;
        element.name = name;
        element.line = XML_GetCurrentLineNumber(parser_.get());
        for (; *attributes != nullptr; attributes += 2)
            element.attributes.emplace_back(attributes[0], attributes[1]);
        // A parent's list grows only while its last child is closed, so that pointers to open elements hold.
        XmlElement& added = open_.empty() ? root_.emplace(std::move(element))
                                          : open_.back()->children.emplace_back(std::move(element));
        open_.push_back(&added);
    }
    void end() {
        if (fault_.empty()) open_.pop_back();
    }
    void stop(std::string fault) {
        fault_ = std::move(fault);
        XML_StopParser(parser_.get(), XML_FALSE);
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw store::StoreError(fmt::format("{}, line {}: {}; write the file again", name_,
                                            XML_GetCurrentLineNumber(parser_.get()), what));
    }

    std::string name_;
    std::unique_ptr<std::remove_pointer_t<XML_Parser>, FreeParser> parser_;
    std::string_view text_;
    std::optional<XmlElement> root_;
    std::vector<XmlElement*> open_;
    std::size_t elements_ = 0;
    std::string fault_;
};

}  // namespace

std::string_view XmlElement::attribute(std::string_view key) const {
    for (const auto& [known, value] : attributes)
        if (known == key) return value;
    return {};
}

XmlElement read_xml(std::string_view text, const std::string& name) {
    return TreeBuilder(text, name).read();
}

}  // namespace shardscope::traces::importer
