#include "traces/import/topology/topology_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/error.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kMostInTable = 256;  // of a table
constexpr std::size_t kMostHosts = 4096;   // of a file
constexpr std::size_t kShownOfCell = 32;   // characters, in messages
constexpr std::string_view kSource = "nvidia-smi";

constexpr std::array<std::string_view, 7> kLinks = {"SYS", "NODE", "PHB", "PXB", "PIX", "PSB", "SOC"};
constexpr std::array<std::string_view, 7> kAccess = {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"};
constexpr std::array<std::string_view, 3> kAfterDevices = {"CPU Affinity", "NUMA Affinity", "GPU NUMA ID"};

// The tables of nvidia-smi topo. "property" is that of `-p2p p`, which has no place in a trace.
enum class TopologyTable { links, read, write, nvlink, atomics, property };
constexpr std::array<std::string_view, 6> kTableNames = {
    "links",  "peer-to-peer reads",   "peer-to-peer writes",
    "NVLink", "peer-to-peer atomics", "PCIe peer-to-peer"};

template <typename List>
bool is_one_of(const List& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

// The line without the codes that underline and colour it on a terminal, and without other control
// characters.
std::string plain(std::string_view line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const auto c = static_cast<unsigned char>(line[i]);
        if (c == 0x1B) {  // ESC [ parameters letter
            if (i + 1 < line.size() && line[i + 1] == '[') ++i;
            while (i + 1 < line.size() && (line[i + 1] == ';' || (line[i + 1] >= '0' && line[i + 1] <= '?')))
                ++i;
            if (i + 1 < line.size()) ++i;
            continue;
        }
        if (c >= 0x20 || c == '\t') text += line[i];
    }
    return text;
}

std::vector<std::string_view> words(std::string_view line) {
    std::vector<std::string_view> found;
    for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
        const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
        found.push_back(line.substr(at, end - at));
        at = end;
    }
    return found;
}

// The number of "GPU3"; none: another word.
std::optional<int> number_after(std::string_view begin, std::string_view word) {
    if (!word.starts_with(begin)) return {};
    const auto number = schema::number_of<int>(word.substr(begin.size()));
    return number && *number >= 0 && *number < 1'000'000 ? number : std::nullopt;
}

bool is_link(std::string_view word) {
    return is_one_of(kLinks, word) || number_after("NV", word).value_or(0) > 0;
}

// Names of adapters in tables of older drivers: "mlx5_0".
bool is_name(std::string_view word) {
    return word != "X" && !is_link(word) && !is_one_of(kAccess, word) && !word.empty() &&
           std::isalpha(static_cast<unsigned char>(word.front())) != 0 &&
           std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) &&
           std::all_of(word.begin(), word.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
           });
}

bool is_device(std::string_view word) {
    return number_after("GPU", word) || number_after("NIC", word);
}

// GPU2 before GPU10 before NIC0.
bool before(std::string_view a, std::string_view b) {
    const auto key = [](std::string_view label) {
        return std::tuple(label.substr(0, 3), label.size(), label);
    };
    return key(a) < key(b);
}

// A table's first line: "GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID".
struct TableHead {
    std::vector<std::string> devices;     // as printed
    std::vector<std::string_view> after;  // of kAfterDevices
};

std::optional<TableHead> head_of(std::string_view line) {
    TableHead head;
    const std::vector<std::string_view> all = words(line);
    std::size_t w = 0;
    for (; w < all.size() && all[w] != "CPU" && all[w] != "NUMA" && all[w] != "GPU"; ++w) {
        const bool first = head.devices.empty();
        if (first ? !number_after("GPU", all[w]) : !is_name(all[w])) return {};
        head.devices.emplace_back(all[w]);
    }
    if (head.devices.empty()) return {};
    std::string rest;
    for (; w < all.size(); ++w) rest += (rest.empty() ? "" : " ") + std::string(all[w]);
    for (std::string_view left = rest; !left.empty();) {
        const auto title = std::find_if(kAfterDevices.begin(), kAfterDevices.end(),
                                        [&](std::string_view t) { return left.starts_with(t); });
        if (title == kAfterDevices.end()) return {};
        head.after.push_back(*title);
        left = schema::trimmed(left.substr(title->size()));
    }
    return head;
}

// Which table a line announces: a command such as "nvidia-smi topo -p2p w".
std::optional<TopologyTable> announced(std::string_view line) {
    const std::vector<std::string_view> all = words(line);
    for (std::size_t w = 0; w + 1 < all.size(); ++w) {
        if (all[w] != "-p2p" && all[w] != "--p2pstatus") continue;
        static constexpr std::pair<char, TopologyTable> kLetters[] = {{'r', TopologyTable::read},
                                                                      {'w', TopologyTable::write},
                                                                      {'n', TopologyTable::nvlink},
                                                                      {'a', TopologyTable::atomics},
                                                                      {'p', TopologyTable::property}};
        std::string_view letter = all[w + 1];
        while (!letter.empty() && (letter.back() == ')' || letter.back() == ':')) letter.remove_suffix(1);
        for (const auto& [key, table] : kLetters) {
            if (letter.size() == 1 && letter.front() == key) return table;
        }
    }
    return {};
}

std::string shown(std::string_view word) {
    return fmt::format("\"{}\"", word.substr(0, kShownOfCell));
}

class TableReader {
  public:
    TableReader(std::string name, std::string host) : name_(std::move(name)), host_(std::move(host)) {}

    Topology read(std::string_view text) {
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            ++line_;
            take(plain(text.substr(0, end)));
            text.remove_prefix(end == text.npos ? text.size() : end + 1);
        }
        end_table();
        if (tables_ == 0) {
            throw store::StoreError(fmt::format(
                "{} has no table of nvidia-smi topo -m or -p2p (its head is GPU0, GPU1 ...); paste the whole "
                "output of the command",
                name_));
        }
        return finish();
    }

  private:
    using Pair = std::tuple<std::string, std::string, std::string>;  // host, from, to

    [[noreturn]] void fail(const std::string& what) const {
        throw store::StoreError(
            fmt::format("{}, line {}: {}; paste the whole output of nvidia-smi again", name_, line_, what));
    }

    void take(const std::string& line) {
        const std::vector<std::string_view> all = words(line);
        if (table_ && all.empty()) return end_table();
        if (all.empty()) return;
        if (const auto head = head_of(line)) {
            end_table();
            return begin_table(*head);
        }
        if (table_ && (table_->rows < table_->labels.size() || is_device(all[0]))) return row(all);
        end_table();
        if (all.size() == 2 && all[0] == "Host") return begin_host(std::string(all[1]));
        if (const auto table = announced(line)) announced_ = table;
        // The legend of adapters: "NIC0: mlx5_0".
        if (all.size() == 2 && all[0].ends_with(':')) {
            const auto number = number_after("NIC", all[0].substr(0, all[0].size() - 1));
            const auto device = number ? devices_.find({host_, "infiniband", *number}) : devices_.end();
            if (device != devices_.end()) device->second.name = all[1];
        }
    }

    void begin_host(std::string host) {
        if (!hosts_.insert(host).second) fail(fmt::format("host {} begins a second time", shown(host)));
        if (hosts_.size() > kMostHosts) fail(fmt::format("there are more than {} hosts", kMostHosts));
        host_ = std::move(host);
        done_.clear();
        announced_.reset();
    }

    void begin_table(const TableHead& head) {
        if (head.devices.size() > kMostInTable)
            fail(fmt::format("the table has {} devices, and {} is the most that is read", head.devices.size(),
                             kMostInTable));
        table_ = OpenTable{.first_line = line_, .head = head, .labels = {}, .kind = {}, .rows = 0};
        int named = 0;
        for (const std::string& word : head.devices) {
            std::string label = word;
            if (const auto gpu = number_after("GPU", word)) {
                device("gpu", *gpu);
            } else if (const auto nic = number_after("NIC", word)) {
                device("infiniband", *nic);
            } else {
                label = fmt::format("NIC{}", named);
                device("infiniband", named++).name = word;
            }
            if (is_one_of(table_->labels, label)) fail(fmt::format("{} is twice in the head", shown(word)));
            table_->labels.push_back(label);
        }
        if (!head.after.empty()) set_kind(TopologyTable::links);
    }

    schema::DeviceRow& device(const std::string& kind, int number) {
        schema::DeviceRow& row = devices_[{host_, kind, number}];
        row.host = host_;
        row.kind = kind;
        row.number = number;
        return row;
    }

    void set_kind(TopologyTable kind) {
        table_->kind = kind;
        if (!done_.insert(kind).second) {
            const bool unnamed = kind == TopologyTable::read && !announced_;
            fail(fmt::format(
                "this is a second table of {}{}", kTableNames[static_cast<std::size_t>(kind)],
                unnamed ? ", since no line such as \"nvidia-smi topo -p2p w\" before it says what it "
                          "shows"
                        : " of one host (a line \"Host NAME\" begins another)"));
        }
    }

    void row(const std::vector<std::string_view>& all) {
        const std::vector<std::string>& columns = table_->labels;
        if (table_->rows == columns.size())
            fail(fmt::format("the table has a row more than the {} columns of its head in line {}",
                             columns.size(), table_->first_line));
        const std::string& wanted = table_->head.devices[table_->rows];
        if (all[0] != wanted) fail(fmt::format("{} is where the row of {} should be", shown(all[0]), wanted));
        if (all.size() < columns.size() + 1)
            fail(fmt::format("the row of {} has {} of {} cells", wanted, all.size() - 1, columns.size()));
        for (std::size_t c = 0; c < columns.size(); ++c) cell(c, all[c + 1]);
        affinity(std::span(all).subspan(columns.size() + 1));
        ++table_->rows;
    }

    void cell(std::size_t column, std::string_view word) {
        const std::string& from = table_->labels[table_->rows];
        const std::string& to = table_->labels[column];
        if ((column == table_->rows) != (word == "X")) {
            fail(fmt::format("{} is between {} and {}, where {} is expected", shown(word),
                             table_->head.devices[table_->rows], table_->head.devices[column],
                             column == table_->rows ? "X" : "a link or a status"));
        }
        if (word == "X" || word == "-") return;  // itself; unknown, as info --topology prints it
        const bool link = is_link(word);
        if (!link && !is_one_of(kAccess, word))
            fail(fmt::format(
                "{} is neither a link (NV4, PIX, PXB, PHB, NODE, SYS) nor a status (OK, CNS, NS, ...)",
                shown(word)));
        if (!table_->kind) set_kind(link ? TopologyTable::links : announced_.value_or(TopologyTable::read));
        if (link != (*table_->kind == TopologyTable::links))
            fail(fmt::format("{} is in a table of {}", shown(word),
                             kTableNames[static_cast<std::size_t>(*table_->kind)]));
        if (*table_->kind == TopologyTable::property) return;
        schema::TopologyRow& pair = pairs_[{host_, from, to}];
        switch (*table_->kind) {
            case TopologyTable::links:
                pair.link = word == "SOC" ? "SYS" : word;
                pair.lanes = number_after("NV", word).value_or(-1);
                break;
            case TopologyTable::read:
                pair.read = word;
                break;
            case TopologyTable::write:
                pair.write = word;
                break;
            case TopologyTable::nvlink:
                pair.nvlink = word;
                break;
            case TopologyTable::atomics:
                pair.atomics = word;
                break;
            case TopologyTable::property:
                break;
        }
    }

    // The columns after the devices: only GPUs have values there.
    void affinity(std::span<const std::string_view> cells) {
        const std::vector<std::string_view>& titles = table_->head.after;
        const auto gpu = number_after("GPU", table_->labels[table_->rows]);
        if (cells.size() > titles.size())
            fail(fmt::format("{} stands after the last column", shown(cells[titles.size()])));
        for (std::size_t c = 0; gpu && c < cells.size(); ++c) put(device("gpu", *gpu), titles[c], cells[c]);
    }

    void put(schema::DeviceRow& gpu, std::string_view title, std::string_view cell) {
        if (cell == "N/A") return;
        if (title == "CPU Affinity") {
            if (cell.find_first_not_of("0123456789,-") != cell.npos)
                fail(fmt::format("{} is not a list of processors", shown(cell)));
            gpu.cpus = cell;
        } else if (title == "NUMA Affinity") {
            if (const auto numa = schema::number_of<int>(cell); numa && *numa >= 0) {
                gpu.numa = *numa;
            } else if (cell.find_first_not_of("0123456789,-") == cell.npos) {
                several_nodes_ = true;
            } else {
                fail(fmt::format("{} is not a NUMA node", shown(cell)));
            }
        } else {
            own_nodes_ = true;
        }
    }

    void end_table() {
        if (!table_) return;
        if (table_->rows < table_->labels.size())
            fail(fmt::format("the table that begins in line {} has {} of {} rows", table_->first_line,
                             table_->rows, table_->labels.size()));
        if (!table_->kind) set_kind(announced_.value_or(TopologyTable::links));  // of one GPU
        if (*table_->kind == TopologyTable::read && !announced_) unnamed_ = true;
        if (*table_->kind == TopologyTable::property) property_ = true;
        table_.reset();
        announced_.reset();
        ++tables_;
    }

    Topology finish() {
        Topology result;
        for (auto& [key, row] : devices_) result.devices.push_back(std::move(row));
        for (auto& [key, row] : pairs_) {
            const auto& [host, from, to] = key;
            row.host = row.to_host = host;
            row.from = from;
            row.to = to;
            row.source = kSource;
        }
        for (const auto& [key, row] : pairs_) {
            const auto& [host, from, to] = key;
            const auto back = pairs_.find({host, to, from});
            const auto facts = [](const schema::TopologyRow& r) {
                return std::tie(r.link, r.read, r.write, r.nvlink, r.atomics);
            };
            const bool same = back != pairs_.end() && facts(back->second) == facts(row);
            if (!same || before(from, to)) result.topology.push_back(row);
        }
        const auto note = [&](bool holds, const char* sentence) {
            if (holds) result.notes.push_back(name_ + sentence);
        };
        note(unnamed_,
             ": which peer-to-peer table it has is not said, and it is taken for reads; write the command, "
             "such as "
             "nvidia-smi topo -p2p w, in a line before it");
        note(property_, ": the table of nvidia-smi topo -p2p p has no place in a trace and is left out");
        note(several_nodes_, ": a GPU that is next to several NUMA nodes has none in the trace");
        note(own_nodes_, ": the column GPU NUMA ID has no place in a trace and is left out");
        return result;
    }

    struct OpenTable {
        std::size_t first_line = 0;
        TableHead head;
        std::vector<std::string> labels;  // GPU0, NIC0
        std::optional<TopologyTable> kind;
        std::size_t rows = 0;
    };

    std::string name_, host_;
    std::size_t line_ = 0, tables_ = 0;
    std::optional<OpenTable> table_;
    std::optional<TopologyTable> announced_;
    std::set<TopologyTable> done_;  // tables of the host
    std::set<std::string> hosts_;
    std::map<std::tuple<std::string, std::string, int>, schema::DeviceRow> devices_;
    std::map<Pair, schema::TopologyRow> pairs_;
    bool unnamed_ = false, property_ = false, several_nodes_ = false, own_nodes_ = false;
};

}  // namespace

Topology read_topology_text(std::string_view text, const std::string& name, const std::string& host) {
    return TableReader(name, host).read(text);
}

bool is_topology_text(std::string_view head) {
    while (!head.empty()) {
        const std::size_t end = head.find('\n');
        const std::string line = plain(head.substr(0, end));
        if (head_of(line)) return true;
        head.remove_prefix(end == head.npos ? head.size() : end + 1);
    }
    return false;
}

}  // namespace shardscope::traces::importer
