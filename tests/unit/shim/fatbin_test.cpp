// SPDX-License-Identifier: Apache-2.0
// The fat binary reader, on containers made here: every encoding, the choice among entries, and
// damage of every kind.
#include "runtime/module/fatbin.h"
#include "runtime/module/host_object.h"

#include <catch2/catch.hpp>
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <elf.h>
#include <fstream>
#include <memory>
#include <random>

using namespace ptarmigan::runtime;

namespace {

using Bytes = std::vector<std::uint8_t>;

template <class T> void put(Bytes& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

enum class Packing { plain, lz4, zstd };

/// One entry as fatbinary writes it. kind 1: PTX, 2: cubin.
Bytes make_entry(unsigned kind, unsigned architecture, const std::string& content,
                 Packing packing = Packing::plain, std::uint64_t flags = 0x11,
                 const std::string& options = {}) {
    std::string payload = content;
    if (packing == Packing::lz4) {
        payload.resize(LZ4_compressBound(static_cast<int>(content.size())));
        payload.resize(LZ4_compress_default(content.data(), payload.data(),
                                            static_cast<int>(content.size()),
                                            static_cast<int>(payload.size())));
        flags |= 0x2000;
    } else if (packing == Packing::zstd) {
        payload.resize(ZSTD_compressBound(content.size()));
        payload.resize(
            ZSTD_compress(payload.data(), payload.size(), content.data(), content.size(), 3));
        flags |= 0x8000;
    }
    std::size_t exact = payload.size();
    payload.resize((exact + 7) / 8 * 8);
    std::size_t header_size = options.empty() ? 64 : 64 + 8 + (options.size() + 7) / 8 * 8;
    Bytes entry(header_size);
    put<std::uint16_t>(entry, 0, static_cast<std::uint16_t>(kind));
    put<std::uint16_t>(entry, 2, 0x0101);
    put<std::uint32_t>(entry, 4, static_cast<std::uint32_t>(header_size));
    put<std::uint64_t>(entry, 8, payload.size());
    put<std::uint16_t>(entry, 0x1a, 9);
    put<std::uint32_t>(entry, 0x1c, architecture);
    put<std::uint64_t>(entry, 0x28, flags);
    if (packing != Packing::plain) {
        put<std::uint32_t>(entry, 0x10, static_cast<std::uint32_t>(exact));
        put<std::uint64_t>(entry, 0x38, content.size());
    }
    if (!options.empty()) {
        put<std::uint32_t>(entry, 0x14, 64);
        put<std::uint32_t>(entry, 64, 72);
        put<std::uint32_t>(entry, 68, static_cast<std::uint32_t>(options.size()));
        std::memcpy(entry.data() + 72, options.data(), options.size());
    }
    entry.insert(entry.end(), payload.begin(), payload.end());
    return entry;
}

Bytes make_container(std::initializer_list<Bytes> entries) {
    Bytes container(16);
    for (const Bytes& entry : entries)
        container.insert(container.end(), entry.begin(), entry.end());
    put<std::uint32_t>(container, 0, 0xBA55ED50);
    put<std::uint16_t>(container, 4, 1);
    put<std::uint16_t>(container, 6, 16);
    put<std::uint64_t>(container, 8, container.size() - 16);
    return container;
}

std::string ptx_text(const std::string& target) {
    std::string text = ".version 9.0\n.target " + target + "\n.address_size 64\n";
    for (int i = 0; i < 30; ++i)
        text += "// a line that packs well\n";
    return text;
}

ImagePtx read(const Bytes& container, ImageOptions options = {}) {
    return read_image(container.data(), container.size(), options);
}

struct Wrapper {
    std::uint32_t magic = 0x466243B1, version = 1;
    const void* container = nullptr;
    const void* const* inputs = nullptr;
};

/// Reads a copy that ends exactly at `size`, so that a sanitizer sees any read behind it.
void read_exact(const Bytes& container, std::size_t size) {
    auto copy = std::make_unique<std::uint8_t[]>(size);
    std::memcpy(copy.get(), container.data(), size);
    ImagePtx image = read_image(copy.get(), size, {});
    if (image.result != ImageResult::ok)
        CHECK(!image.message.empty());
}

} // namespace

TEST_CASE("fatbin: every packing gives the text back") {
    std::string text = ptx_text("sm_75");
    for (Packing packing : {Packing::plain, Packing::lz4, Packing::zstd}) {
        ImagePtx image =
            read(make_container({make_entry(2, 75, "ELF"), make_entry(1, 75, text, packing)}));
        REQUIRE(image.result == ImageResult::ok);
        CHECK(image.text == text);
        CHECK(image.architecture == 75);
    }
}

TEST_CASE("fatbin: the highest suitable architecture wins, its `a` variant before the plain one") {
    auto entry = [](unsigned sm, std::uint64_t flags = 0x11) {
        return make_entry(1, sm,
                          "text " + std::to_string(sm) +
                              (flags & 0x100000   ? "a"
                               : flags & 0x200000 ? "f"
                                                  : ""),
                          Packing::plain, flags);
    };
    CHECK(read(make_container({entry(75), entry(90), entry(80)})).text == "text 90");
    CHECK(read(make_container({entry(90), entry(90, 0x100011), entry(75)})).text == "text 90a");
    CHECK(read(make_container({entry(80, 0x100011), entry(75)})).text == "text 75");
    CHECK(read(make_container({entry(120), entry(80)})).text == "text 80");
    CHECK(read(make_container({entry(100, 0x200011), entry(80)}), {103, false}).text ==
          "text 100f");
    CHECK(read(make_container({entry(100, 0x200011), entry(80)}), {120, false}).text == "text 80");
}

TEST_CASE("fatbin: newer PTX only is 209 unless accepted, and then the lowest is taken") {
    Bytes container =
        make_container({make_entry(1, 121, "text 121"), make_entry(1, 120, "text 120")});
    ImagePtx refused = read(container);
    CHECK(refused.result == ImageResult::no_binary_for_device);
    CHECK(image_result_code(refused.result) == 209);
    CHECK(refused.advice.find("PTARMIGAN_ACCEPT_NEWER_PTX") != std::string::npos);
    CHECK(read(container, {90, true}).text == "text 120");
}

TEST_CASE("fatbin: newer PTX stands in for machine code that the device would run") {
    const auto taken = [](std::initializer_list<Bytes> entries, unsigned device = 90) {
        return read(make_container(entries), {device, false}).text;
    };
    const Bytes newest = make_entry(1, 120, "text 120"), specific = make_entry(1, 100, "text 100a", Packing::plain, 0x100011);
    CHECK(taken({make_entry(2, 80, "ELF"), make_entry(2, 90, "ELF"), newest}) == "text 120");
    CHECK(taken({make_entry(2, 80, "ELF"), newest}).empty()); // of another major number: no GPU of sm_90 runs it
    CHECK(taken({make_entry(2, 80, "ELF"), newest}, 89) == "text 120");
    CHECK(taken({make_entry(2, 89, "ELF"), newest}, 80).empty());
    CHECK(taken({make_entry(2, 90, "ELF"), specific, make_entry(1, 121, "text 121"), newest}) == "text 120");
    CHECK(taken({make_entry(2, 90, "ELF"), specific}) == "text 100a");
    CHECK(taken({make_entry(2, 90, "ELF"), make_entry(1, 75, "text 75"), newest}) == "text 75");
    CHECK(taken({make_entry(2, 90, "ELF"), make_entry(1, 80, "text 80a", Packing::plain, 0x100011)}).empty());
    CHECK(read(make_container({make_entry(2, 90, "ELF"), newest}), {90, false, false}).text.empty());
    const ImagePtx image = read(make_container({make_entry(2, 90, "ELF"), newest}));
    CHECK(image.is_newer);
    CHECK(image.architecture == 120);
    CHECK(!read(make_container({make_entry(2, 90, "ELF"), make_entry(1, 90, "text 90")})).is_newer);
}

TEST_CASE("fatbin: SASS only names what there is and the flag to add") {
    ImagePtx image = read(make_container({make_entry(2, 90, "ELF"), make_entry(2, 75, "ELF")}));
    CHECK(image.result == ImageResult::no_binary_for_device);
    CHECK(image.message.find("SASS sm_90") != std::string::npos);
    CHECK(image.advice.find("-gencode arch=compute_90,code=compute_90") != std::string::npos);
}

TEST_CASE("fatbin: a device that was asked for takes machine code of its own major number only") {
    const auto taken = [](unsigned of, unsigned device, bool own_generation_only) {
        std::ifstream file(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/vector_add.sm_" + std::to_string(of) + ".cubin",
                           std::ios::binary);
        const std::string cubin((std::istreambuf_iterator<char>(file)), {});
        REQUIRE(cubin.size() > 1000);
        ImageOptions options{.device_architecture = device, .lifts = true};
        options.own_generation_only = own_generation_only;
        const ImagePtx bare = read_image(cubin.data(), cubin.size(), options);
        const ImagePtx packed = read(make_container({make_entry(2, of, cubin)}), options);
        CHECK(bare.result == packed.result);
        if (bare.result != ImageResult::ok) CHECK(image_result_code(bare.result) == 209);
        return bare.result == ImageResult::ok;
    };
    CHECK(taken(80, 80, true));
    CHECK(taken(80, 89, true));
    CHECK(taken(120, 121, true));
    CHECK_FALSE(taken(80, 75, true));
    CHECK_FALSE(taken(80, 90, true));
    CHECK_FALSE(taken(80, 120, true));
    CHECK_FALSE(taken(100, 120, true));
    CHECK_FALSE(taken(120, 100, true));
    // The device that nobody asked for takes earlier ones, too; never later ones.
    CHECK(taken(80, 90, false));
    CHECK_FALSE(taken(120, 90, false));
}

TEST_CASE("fatbin: PTX that a GPU would pass over for its machine code is passed over") {
    std::ifstream file(PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/vector_add.sm_80.cubin", std::ios::binary);
    const std::string cubin((std::istreambuf_iterator<char>(file)), {});
    REQUIRE(cubin.size() > 1000);
    const auto taken = [](const Bytes& container, unsigned device, bool lifts) {
        const ImagePtx image = read(container, {.device_architecture = device, .lifts = lifts});
        REQUIRE(image.result == ImageResult::ok);
        return image.machine_code ? "machine code" : image.text;
    };
    const Bytes older = make_entry(1, 75, "text 75"), same = make_entry(1, 80, "text 80");
    const Bytes code = make_entry(2, 80, cubin), specific = make_entry(2, 80, cubin, Packing::plain, 0x100011);
    // The PTX was compiled for less than the machine code: its kernels may be empty.
    CHECK(taken(make_container({code, older}), 80, true) == "machine code");
    CHECK(taken(make_container({code, older}), 86, true) == "machine code");
    CHECK(taken(make_container({specific, same}), 80, true) == "machine code");
    CHECK(taken(make_container({code, older}), 80, false) == "text 75");
    // A GPU of another major number takes the PTX, as one does that the specific code is not for.
    CHECK(taken(make_container({code, older}), 90, true) == "text 75");
    CHECK(taken(make_container({specific, older}), 86, true) == "text 75");
    CHECK(taken(make_container({code, same, older}), 80, true) == "text 80");
    // What can't be read is no reason to refuse.
    CHECK(taken(make_container({make_entry(2, 80, "ELF"), older}), 80, true) == "text 75");

    // Relocatable code: what was linked of units with machine code of their own.
    const Bytes unit = make_container({code, older}), plain = make_container({code, same});
    const Bytes linked = make_container({code});
    const void* units[] = {unit.data(), nullptr};
    Wrapper relocatable{.version = 2, .container = linked.data(), .inputs = units};
    const ImageOptions options{.device_architecture = 80, .lifts = true};
    CHECK(read_image(&relocatable, SIZE_MAX, options).machine_code);
    units[0] = plain.data();
    CHECK(read_image(&relocatable, SIZE_MAX, options).text == "text 80");
}

TEST_CASE("fatbin: options of an entry are read") {
    Bytes container =
        make_container({make_entry(1, 75, "text", Packing::plain, 0x11, "-maxrregcount=32")});
    ContainerContents contents = list_container(container.data(), container.size());
    REQUIRE(contents.sound);
    REQUIRE(contents.ptx.size() == 1);
    CHECK(contents.ptx[0].options == "-maxrregcount=32");
    CHECK(contents.ptx[0].isa_major == 9);
}

TEST_CASE("fatbin: wrappers of version 1 and 2") {
    Bytes ptx = make_container({make_entry(1, 75, ptx_text("sm_75"), Packing::zstd)});
    Bytes sass = make_container({make_entry(2, 75, "ELF")});
    Bytes library = make_container({make_entry(1, 121, "device runtime library")});
    Wrapper first{.container = ptx.data()};
    CHECK(read_image(&first, SIZE_MAX, {}).text == ptx_text("sm_75"));

    const void* one_unit[] = {ptx.data(), library.data(), nullptr};
    Wrapper relocatable{.version = 2, .container = sass.data(), .inputs = one_unit};
    CHECK(read_image(&relocatable, SIZE_MAX, {}).text == ptx_text("sm_75"));

    const void* two_units[] = {ptx.data(), ptx.data(), nullptr};
    relocatable.inputs = two_units;
    ImagePtx linked = read_image(&relocatable, SIZE_MAX, {});
    CHECK(linked.result == ImageResult::ok);
    CHECK(linked.text.empty());
    REQUIRE(linked.units.size() == 2);
    CHECK(linked.units[0].text == ptx_text("sm_75"));
    CHECK(linked.units[0].name != linked.units[1].name);

    const void* with_library[] = {ptx.data(), library.data(), ptx.data(), sass.data(), nullptr};
    relocatable.inputs = with_library;
    linked = read_image(&relocatable, SIZE_MAX, {});
    CHECK(linked.units.size() == 2);
    CHECK(linked.units_without_ptx == 2);

    // PTX for newer devices stands in for machine code of this one, unit by unit, but not that of libcudadevrt.
    Bytes newer = make_container({make_entry(2, 90, "ELF"), make_entry(1, 120, ptx_text("sm_120"), Packing::zstd)});
    Bytes other = make_container({make_entry(2, 100, "ELF"), make_entry(1, 120, ptx_text("sm_120"))});
    Bytes runtime = make_container({make_entry(2, 90, "ELF"), make_entry(1, 121, ".func f() { __cuda_syscall_x }")});
    const void* with_newer[] = {newer.data(), runtime.data(), other.data(), newer.data(), nullptr};
    relocatable.inputs = with_newer;
    linked = read_image(&relocatable, SIZE_MAX, {});
    CHECK(linked.is_newer);
    REQUIRE(linked.units.size() == 2);
    CHECK(linked.units[1].text == ptx_text("sm_120"));
    CHECK(linked.units_without_ptx == 2);

    Wrapper unknown{.version = 7, .container = ptx.data()};
    CHECK(read_image(&unknown, SIZE_MAX, {}).result == ImageResult::invalid_image);
    Wrapper empty{.container = nullptr};
    CHECK(read_image(&empty, SIZE_MAX, {}).result == ImageResult::invalid_image);
}

TEST_CASE("fatbin: other images are told apart") {
    std::string text = " \n\n.version 9.0\n";
    CHECK(image_kind(text.c_str()) == ImageKind::ptx_text);
    CHECK(read_image(text.c_str(), SIZE_MAX, {}).text == text);
    char elf[64] = "\x7f"
                   "ELF";
    CHECK(read_image(elf, sizeof elf, {}).result == ImageResult::invalid_image);
    elf[18] = static_cast<char>(190); // the machine: a GPU's code
    CHECK(read_image(elf, sizeof elf, {}).result == ImageResult::no_binary_for_device);
    CHECK(read_image(elf, 14, {}).result == ImageResult::invalid_image);
    CHECK(read_image("\x01\x02\x03\x04", 4, {}).result == ImageResult::invalid_image);
    CHECK(image_kind("", 1) == ImageKind::unknown);
    CHECK(image_kind(nullptr) == ImageKind::unknown);
}

TEST_CASE("fatbin: containers cut at every length are refused, not read past") {
    Bytes container = make_container(
        {make_entry(2, 75, "ELF"), make_entry(1, 75, ptx_text("sm_75"), Packing::lz4),
         make_entry(1, 80, ptx_text("sm_80"), Packing::zstd, 0x11, "-O3")});
    for (std::size_t size = 0; size < container.size(); ++size) {
        read_exact(container, size);
        if (size >= 4) // with less of the magic number, the letter that it begins with is text
            CHECK(read_image(container.data(), size, {}).result != ImageResult::ok);
    }
    // The same with a header that states the cut size, so that the entries are reached.
    for (std::size_t size = 16; size < container.size(); ++size) {
        Bytes cut(container.begin(), container.begin() + static_cast<std::ptrdiff_t>(size));
        put<std::uint64_t>(cut, 8, size - 16);
        read_exact(cut, size);
    }
}

TEST_CASE("fatbin: damaged bits never crash") {
    Bytes container =
        make_container({make_entry(1, 75, ptx_text("sm_75"), Packing::lz4),
                        make_entry(1, 80, ptx_text("sm_80"), Packing::zstd, 0x11, "-O3"),
                        make_entry(1, 90, ptx_text("sm_90"))});
    for (std::size_t bit = 0; bit < container.size() * 8; ++bit) {
        Bytes damaged = container;
        damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        read_exact(damaged, damaged.size());
    }
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        Bytes damaged = container;
        for (int i = 0; i < 8; ++i)
            damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
        read_exact(damaged, damaged.size());
    }
}

namespace {

/// An ELF file with these sections, as far as a reader of sections looks at it.
Bytes make_elf(unsigned type, const std::vector<std::pair<std::string, Bytes>>& sections) {
    std::string names(1, '\0');
    Bytes file(sizeof(Elf64_Ehdr));
    std::vector<Elf64_Shdr> headers(1);
    const auto add = [&](const std::string& name, const Bytes& bytes) {
        Elf64_Shdr header{};
        header.sh_name = static_cast<Elf64_Word>(names.size());
        header.sh_type = SHT_PROGBITS;
        header.sh_offset = file.size();
        header.sh_size = bytes.size();
        names += name + '\0';
        file.insert(file.end(), bytes.begin(), bytes.end());
        headers.push_back(header);
    };
    for (const auto& [name, bytes] : sections) add(name, bytes);
    const std::string own = ".shstrtab";
    add(own, Bytes(names.begin(), names.end()));
    headers.back().sh_size += own.size() + 1;
    file.insert(file.end(), own.begin(), own.end());
    file.push_back(0);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_type = static_cast<Elf64_Half>(type);
    header.e_shoff = file.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers.size());
    header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
    std::memcpy(file.data(), &header, sizeof header);
    for (const Elf64_Shdr& each : headers) {
        const auto bytes = reinterpret_cast<const std::uint8_t*>(&each);
        file.insert(file.end(), bytes, bytes + sizeof each);
    }
    return file;
}

Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

} // namespace

TEST_CASE("fatbin: the code of a linked program, whole and relocatable") {
    const Bytes first = make_container({make_entry(1, 75, ptx_text("sm_75"))});
    const Bytes second = make_container({make_entry(1, 90, ptx_text("sm_90"), Packing::zstd)});
    const Bytes none = make_container({make_entry(2, 90, "ELF")});
    const Bytes program = make_elf(ET_DYN, {{".text", Bytes(16)},
                                            {".nv_fatbin", first + second},
                                            {"__nv_relfatbin", second + none + first}});
    const ProgramCode code = find_program_code(program);
    REQUIRE(code.containers.size() == 2);
    CHECK(read_image(code.containers[1].data(), code.containers[1].size(), {}).text == ptx_text("sm_90"));
    REQUIRE(code.units.size() == 3);

    // As the program's own list of the same units gives them.
    std::vector<std::pair<const void*, std::size_t>> units;
    for (const auto& unit : code.units) units.emplace_back(unit.data(), unit.size());
    const ImagePtx from_file = read_units(units, {});
    const void* inputs[] = {second.data(), none.data(), first.data(), nullptr};
    const Wrapper wrapper{0x466243B1, 2, nullptr, inputs};
    const ImagePtx from_program = read_image(&wrapper, sizeof wrapper, {});
    REQUIRE(from_file.units.size() == 2);
    REQUIRE(from_program.units.size() == 2);
    CHECK(from_file.units_without_ptx == 1);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(from_file.units[i].text == from_program.units[i].text);
        CHECK(from_file.units[i].name == from_program.units[i].name);
    }

    CHECK(find_program_code(make_elf(ET_REL, {{".nv_fatbin", first}})).containers.empty());
    CHECK(find_program_code(first).containers.empty());
    for (std::size_t size = 0; size < program.size(); ++size) {
        const auto copy = std::make_unique<std::uint8_t[]>(size);
        std::memcpy(copy.get(), program.data(), size);
        for (const auto& container : find_program_code({copy.get(), size}).containers)
            CHECK(container.size() <= size);
    }
}
