// SPDX-License-Identifier: Apache-2.0
// The products of golden.tsv as PTX instructions: each warp multiplies one tile's matrices, which the host has put into the lanes'
// registers (mma) or into memory (wmma) as the layouts in README.md say. On a GPU and on Ptarmigan:
//   tensor_core_instructions LIBCUDA FOLDER [--form TEXT] [--blocks N] [--every N] [--slice I/N]
// N blocks of 64 of each form (1 unless said otherwise, 64: all), of every Nth form only; --slice I/N: of those blocks the Ith part.
// Then edge_cases.tsv. wgmma's lines: warpgroup_instructions.cpp.
#include "tests/recordings/driver.h"
#include "tests/recordings/tensor_core/golden.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace {

using tensor_inputs::bits_of;
using tensor_inputs::Format;
using tensor_inputs::Matrix;

using Recording = tensor_inputs::Golden;

std::vector<Recording> read_recordings(const std::string& path) {
    std::vector<Recording> recordings = tensor_inputs::read_golden(path);
    std::erase_if(recordings, [](const Recording& r) { return r.name.starts_with("wgmma"); });
    return recordings;
}

/// A matrix as one number for each element, its rows or columns (B) behind each other.
using Elements = std::vector<std::uint64_t>;

/// A form's instruction and where its operands are. Operands: a, b, c, d.
class Instruction {
public:
    explicit Instruction(const Recording& recording)
        : recording_(recording), form_(recording.form), is_wmma_(recording.name.starts_with("wmma")),
          is_quad_(!is_wmma_ && form_.m == 8 && form_.a == Format::f16) {}

    /// Tiles of one warp: mma.m8n8k4 multiplies four.
    int tiles() const { return is_quad_ ? 4 : 1; }
    Format format(int operand) const {
        return operand == 0 ? form_.a : operand == 1 ? form_.b : operand == 2 ? form_.c : form_.d;
    }
    /// Bytes that a warp's operand takes in memory.
    std::size_t bytes(int operand) const {
        if (!is_wmma_) return std::size_t(registers(operand)) * 32 * register_bytes(operand);
        return std::size_t(lines(operand)) * length(operand) * bits_of(format(operand)) / 8;
    }
    std::string text() const;
    void put(int operand, const Elements* tiles, unsigned char* memory) const { move<true>(operand, tiles, memory); }
    void get(int operand, Elements* tiles, unsigned char* memory) const { move<false>(operand, tiles, memory); }

private:
    int lines(int operand) const { return operand == 1 ? form_.n : form_.m; }
    int length(int operand) const { return operand == 0 ? form_.stored : operand == 1 ? form_.k : form_.n; }
    int register_bytes(int operand) const { return bits_of(format(operand)) == 64 ? 8 : 4; }
    int per_register(int operand) const { return register_bytes(operand) * 8 / int(bits_of(format(operand))); }
    int registers(int operand) const { return lines(operand) * length(operand) * tiles() / (32 * per_register(operand)); }
    bool by_columns(int operand) const; ///< wmma's matrices in memory
    struct Place {
        int tile, line, at;
    };
    Place place(int operand, int lane, int r, int j) const;
    template <bool is_put, class Tiles> void move(int operand, Tiles* tiles, unsigned char* memory) const;

    const Recording& recording_;
    const tensor_inputs::Form& form_;
    const bool is_wmma_, is_quad_;
};

bool Instruction::by_columns(int operand) const {
    if (operand >= 2) return recording_.has(".ccol");
    std::istringstream words(recording_.name);
    int layouts = 0;
    for (std::string word; std::getline(words, word, '.');)
        if ((word == "row" || word == "col") && layouts++ == operand) return word == "col";
    return operand == 1;
}

Instruction::Place Instruction::place(int operand, int lane, int r, int j) const {
    const int g = lane / 4, t = lane % 4, e = per_register(operand);
    if (is_quad_) {
        const int product = g % 4, l = lane % 4, h = lane / 16, i = r * e + j;
        if (operand >= 2 && e == 1) return {product, (l & 1) + (i & 2) + 4 * h, (i & 4) + (l & 2) + (i & 1)};
        const bool across = operand == 0 ? by_columns(0) : operand == 1 ? !by_columns(1) : false;
        return across ? Place{product, i + 4 * h, l} : Place{product, l + 4 * h, i};
    }
    if (operand == 1) return {0, g, r * 4 * e + t * e + j};
    if (operand == 0) {
        if (form_.m == 8) return {0, g, r * 4 * e + t * e + j};
        return {0, g + 8 * (r & 1), (r >> 1) * 4 * e + t * e + j};
    }
    const int i = r * e + j;
    return {0, g + 8 * (i >> 1), 2 * t + (i & 1)};
}

template <bool is_put, class Tiles> void Instruction::move(int operand, Tiles* tiles, unsigned char* memory) const {
    const unsigned bits = bits_of(format(operand));
    const auto move_bits = [&](std::size_t at, auto& element) {
        unsigned char* byte = memory + at * bits / 8;
        if constexpr (!is_put) {
            element = 0;
            std::memcpy(&element, byte, bits / 8); // results are no smaller than a byte
        } else if (bits >= 8) {
            std::memcpy(byte, &element, bits / 8);
        } else {
            const unsigned shift = at * bits % 8, mask = ((1u << bits) - 1) << shift;
            *byte = static_cast<unsigned char>((*byte & ~mask) | (element << shift & mask));
        }
    };
    if (is_wmma_) {
        // Rows of A, C and D and columns of B are what lies behind each other.
        const bool along = by_columns(operand) == (operand == 1);
        for (int line = 0; line < lines(operand); ++line)
            for (int i = 0; i < length(operand); ++i)
                move_bits(std::size_t(along ? line * length(operand) + i : i * lines(operand) + line),
                          tiles[0][std::size_t(line * length(operand) + i)]);
        return;
    }
    for (int r = 0; r < registers(operand); ++r)
        for (int lane = 0; lane < 32; ++lane)
            for (int j = 0; j < per_register(operand); ++j) {
                const Place from = place(operand, lane, r, j);
                move_bits(std::size_t((r * 32 + lane) * per_register(operand) + j),
                          tiles[from.tile][std::size_t(from.line * length(operand) + from.at)]);
            }
}

std::string list(const char* name, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
    return text + "}";
}

std::vector<std::string> words_of(const std::string& name) {
    std::istringstream stream(name);
    std::vector<std::string> words;
    for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
    return words;
}

bool is_shape(const std::string& word) {
    return word.size() > 1 && word[0] == 'm' && std::isdigit(static_cast<unsigned char>(word[1]));
}

std::string Instruction::text() const {
    static constexpr const char* names[] = {"a", "b", "c", "d"};
    static constexpr const char* types[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "f32", "f64",
                                            "s32", "s8",   "u8",   "s4",   "u4",   "b1"};
    std::string body, operation, shape;
    for (const std::string& word : words_of(recording_.name)) {
        if (word == "crow" || word == "ccol" || word.starts_with("sel")) continue;
        const bool is_opcode = word == "mma" || word == "wmma" || word.starts_with("sp");
        if (is_shape(word)) shape = "." + word;
        if (!is_opcode && operation.find(".sync") == std::string::npos) operation += ".sync.aligned";
        operation += (operation.empty() ? "" : ".") + word;
        if (is_shape(word) && !is_wmma_ && !is_quad_) operation += ".row.col";
    }
    std::string lists[4];
    for (int o = 0; o < 4; ++o) {
        const bool is_padded = is_wmma_ && o < 2 && form_.a == Format::f16; // eight registers whatever they hold
        const int count = is_padded ? 8 : registers(o), width = register_bytes(o);
        lists[o] = list(names[o], count);
        const std::string l = "%l" + std::to_string(o), type = width == 8 ? ".f64" : ".b32";
        body += "    .reg " + type + " %" + names[o] + "<16>;\n    ld.param.u64 " + l + ", [p" + names[o] +
                "]; mul.wide.u32 %l8, %t1, " + std::to_string(bytes(o)) + "; add.u64 " + l + ", " + l + ", %l8;\n";
        if (!is_wmma_) body += "    add.u64 " + l + ", " + l + ", " + (width == 8 ? "%l7" : "%l6") + ";\n";
        if (o == 3) break;
        if (is_wmma_)
            body += "    wmma.load." + std::string(names[o]) + ".sync.aligned" + (by_columns(o) ? ".col" : ".row") + shape +
                    ".global." + types[int(format(o))] + " " + lists[o] + ", [" + l + "];\n";
        for (int r = 0; r < count && !is_wmma_; ++r)
            body += "    ld.global" + type + " %" + names[o] + std::to_string(r) + ", [" + l + "+" + std::to_string(r * 32 * width) + "];\n";
    }
    body += "    " + operation + " " + lists[3] + ", " + lists[0] + ", " + lists[1] + ", " + lists[2];
    if (form_.sparse) body += std::string(", %t3, ") + recording_.name.back();
    body += ";\n";
    if (is_wmma_)
        body += std::string("    wmma.store.d.sync.aligned") + (by_columns(3) ? ".col" : ".row") + shape + ".global." +
                types[int(form_.d)] + " [%l3], " + lists[3] + ";\n";
    for (int r = 0; r < registers(3) && !is_wmma_; ++r)
        body += std::string("    st.global") + (register_bytes(3) == 8 ? ".f64" : ".b32") + " [%l3+" +
                std::to_string(r * 32 * register_bytes(3)) + "], %d" + std::to_string(r) + ";\n";
    return ".version 9.0\n.target sm_90\n.address_size 64\n"
           ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 pe)\n{\n"
           "    .reg .b32 %t<8>;\n    .reg .b64 %l<16>;\n"
           "    mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mov.u32 %t2, %ntid.x; mad.lo.u32 %t0, %t1, %t2, %t0;\n"
           "    shr.u32 %t1, %t0, 5; and.b32 %t2, %t0, 31; mul.wide.u32 %l6, %t2, 4; mul.wide.u32 %l7, %t2, 8;\n"
           "    ld.param.u64 %l4, [pe]; mul.wide.u32 %l8, %t0, 4; add.u64 %l4, %l4, %l8; ld.global.b32 %t3, [%l4];\n" +
           body + "    ret;\n}\n";
}

/// Operands of a block in the device's memory.
class Block {
public:
    Block(recordings::Driver& driver, const Recording& recording)
        : driver_(driver), recording_(recording), form_(recording.form), instruction_(recording),
          warps_(recording.tiles / instruction_.tiles()), module_(driver.load(instruction_.text())) {
        for (int o = 0; o < 4; ++o) addresses_[o] = driver.allocate(instruction_.bytes(o) * std::size_t(warps_));
        addresses_[4] = driver.allocate(sizeof(std::uint32_t) * 32 * std::size_t(warps_));
    }
    ~Block() {
        for (const auto address : addresses_) driver_.call<recordings::Address>("cuMemFree_v2", address);
        driver_.unload(module_);
    }

    std::uint64_t hash(int block) {
        make_inputs(block);
        std::uint64_t result = 0;
        const int distribution = block % tensor_inputs::distributions;
        for (int left = tensor_inputs::passes(form_, distribution); left > 0; --left) {
            put(2, c_);
            launch();
            get_results();
            for (std::size_t t = 0; t < c_.size() && left > 1; ++t)
                for (std::size_t i = 0; i < c_[t].size(); ++i) c_[t][i] = tensor_inputs::next_c(form_, distribution, d_[t][i]);
        }
        const std::size_t size = std::size_t(form_.m) * std::size_t(form_.n);
        for (std::size_t t = 0; t < d_.size(); ++t)
            for (std::size_t i = 0; i < size; ++i) result += tensor_inputs::hash_of(t * size + i, d_[t][i]);
        return result;
    }

    /// D of tiles whose rows of A are all `row`, columns of B `column` and elements of C `c`; `nibbles` are a row's metadata.
    const std::vector<Elements>& products_of(const Elements& row, const Elements& column, std::uint64_t c,
                                             const std::vector<std::uint32_t>& nibbles) {
        const auto tiles = std::size_t(recording_.tiles), size = std::size_t(form_.m) * std::size_t(form_.n);
        Elements a, b;
        std::vector<std::uint32_t> rows, metadata(std::size_t(warps_) * 32);
        for (int i = 0; i < form_.m; ++i) a.insert(a.end(), row.begin(), row.end()), rows.insert(rows.end(), nibbles.begin(), nibbles.end());
        for (int i = 0; i < form_.n; ++i) b.insert(b.end(), column.begin(), column.end());
        for (std::size_t w = 0; w < std::size_t(warps_) && form_.sparse; ++w) tensor_inputs::metadata_words(recording_, rows.data(), &metadata[32 * w]);
        d_.assign(tiles, Elements(size));
        put(0, std::vector<Elements>(tiles, a));
        put(1, std::vector<Elements>(tiles, b));
        put(2, std::vector<Elements>(tiles, Elements(size, c)));
        driver_.upload(addresses_[4], metadata.data(), metadata.size() * sizeof metadata[0]);
        launch();
        get_results();
        return d_;
    }

private:
    void make_inputs(int block) {
        const auto tiles = std::size_t(recording_.tiles);
        std::vector<Elements> a(tiles), b(tiles);
        c_.assign(tiles, {});
        d_.assign(tiles, Elements(std::size_t(form_.m) * std::size_t(form_.n)));
        std::vector<std::uint32_t> metadata(std::size_t(warps_) * 32), nibbles(std::size_t(form_.m * form_.chunks()));
        for (std::size_t t = 0; t < tiles; ++t) {
            const tensor_inputs::Tile tile = tensor_inputs::tile_of(form_, block, int(t));
            for (int i = 0; i < form_.m * form_.stored; ++i)
                a[t].push_back(tensor_inputs::element(form_, tile, Matrix::a, i, i % form_.stored, i / form_.stored));
            for (int i = 0; i < form_.n * form_.k; ++i)
                b[t].push_back(tensor_inputs::element(form_, tile, Matrix::b, i, i % form_.k, i / form_.k));
            for (int i = 0; i < form_.m * form_.n; ++i) c_[t].push_back(tensor_inputs::element(form_, tile, Matrix::c, i, 0, 0));
            if (!form_.sparse) continue;
            for (std::size_t i = 0; i < nibbles.size(); ++i) nibbles[i] = tensor_inputs::metadata(form_, tile, int(i));
            tensor_inputs::metadata_words(recording_, nibbles.data(), &metadata[32 * t]);
        }
        put(0, a);
        put(1, b);
        driver_.upload(addresses_[4], metadata.data(), metadata.size() * sizeof metadata[0]);
    }
    void put(int operand, const std::vector<Elements>& tiles) {
        const std::size_t bytes = instruction_.bytes(operand);
        std::vector<unsigned char> memory(bytes * std::size_t(warps_));
        for (std::size_t w = 0; w < std::size_t(warps_); ++w)
            instruction_.put(operand, &tiles[w * std::size_t(instruction_.tiles())], &memory[w * bytes]);
        driver_.upload(addresses_[operand], memory.data(), memory.size());
    }
    void launch() {
        constexpr int warps_of_block = 4;
        void* parameters[5];
        for (int i = 0; i < 5; ++i) parameters[i] = &addresses_[i];
        driver_.launch(module_, "k", unsigned(warps_ / warps_of_block), 32 * warps_of_block, 1, parameters);
    }
    void get_results() {
        const std::size_t bytes = instruction_.bytes(3);
        std::vector<unsigned char> memory(bytes * std::size_t(warps_));
        driver_.download(memory.data(), addresses_[3], memory.size());
        for (std::size_t w = 0; w < std::size_t(warps_); ++w)
            instruction_.get(3, &d_[w * std::size_t(instruction_.tiles())], &memory[w * bytes]);
    }

    recordings::Driver& driver_;
    const Recording& recording_;
    const tensor_inputs::Form& form_;
    const Instruction instruction_;
    const int warps_;
    void* module_;
    recordings::Address addresses_[5];
    std::vector<Elements> c_, d_;
};

template <class Number> std::vector<Number> numbers(const std::string& text) {
    std::istringstream stream(text);
    std::vector<Number> result;
    for (Number number; stream >> std::hex >> number;) result.push_back(number);
    return result;
}

struct Counts {
    int equal = 0, different = 0;
};

/// Lines of edge_cases.tsv: form, C, D, a row of A, a column of B, metadata.
Counts check_edge_cases(recordings::Driver& driver, const std::string& folder, const std::vector<Recording>& recordings,
                        const std::string& form) {
    Counts counts;
    std::ifstream file(folder + "/edge_cases.tsv");
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        std::string name, c, d, a, b, nibbles;
        for (auto* field : {&name, &c, &d, &a, &b, &nibbles}) std::getline(line, *field, '\t');
        const auto found = std::find_if(recordings.begin(), recordings.end(), [&](const Recording& r) { return r.name == name; });
        if (found == recordings.end() || !found->has(form.c_str())) continue;
        Recording recording = *found;
        recording.tiles = 4;
        Block block(driver, recording);
        const auto expected = std::stoull(d, nullptr, 16);
        bool equal = true;
        for (const Elements& tile : block.products_of(numbers<std::uint64_t>(a), numbers<std::uint64_t>(b), std::stoull(c, nullptr, 16),
                                                      numbers<std::uint32_t>(nibbles)))
            equal &= std::all_of(tile.begin(), tile.end(), [&](std::uint64_t got) { return got == expected; });
        ++(equal ? counts.equal : counts.different);
        if (!equal) std::printf("%s: not %s\n", name.c_str(), d.c_str());
    }
    return counts;
}

} // namespace

int main(int argc, char** argv) {
    const char* library = nullptr;
    std::string folder, form;
    int blocks = 1, every = 1, slice = 0, slices = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--form") form = value, ++i;
        else if (word == "--blocks") blocks = std::atoi(value), ++i;
        else if (word == "--every") every = std::atoi(value), ++i;
        else if (word == "--slice") slices = std::sscanf(value, "%d/%d", &slice, &slices) == 2 ? slices : 0, ++i;
        else if (!library) library = argv[i];
        else folder = word;
    }
    if (!library || folder.empty() || blocks < 1 || every < 1 || slices < 1) {
        std::fprintf(stderr, "usage: tensor_core_instructions LIBCUDA FOLDER [--form TEXT] [--blocks N] [--every N] [--slice I/N]\n");
        return 2;
    }
    recordings::Driver driver(library);
    const std::vector<Recording> recordings = read_recordings(folder + "/golden.tsv");
    auto [equal, different] = check_edge_cases(driver, folder, recordings, form);
    std::printf("%d edge cases equal, %d different\n", equal, different);
    int forms = 0;
    for (const Recording& recording : recordings) {
        if (!recording.has(form.c_str()) || forms++ % every != 0) continue;
        Block operands(driver, recording);
        for (int i = slice; i < blocks; i += slices) {
            const int block = blocks == 64 ? i : int(tensor_inputs::mix(std::uint64_t(recording.form.id * 64 + i)) % 64);
            const std::uint64_t hash = operands.hash(block);
            if (hash == recording.hash[block]) {
                ++equal;
                continue;
            }
            ++different;
            std::printf("%s block %d: %016llx, recorded %016llx\n", recording.name.c_str(), block,
                        static_cast<unsigned long long>(hash), static_cast<unsigned long long>(recording.hash[block]));
        }
    }
    std::printf("%d blocks and edge cases equal, %d different\n", equal, different);
    return different != 0 || equal == 0;
}
