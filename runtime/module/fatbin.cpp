// SPDX-License-Identifier: Apache-2.0
// Fat binary reader. All header fields are hostile until checked against the container's extent.
#include "runtime/module/fatbin.h"

#include "frontend/sass/cubin.h"
#include "runtime/base/mapped_memory.h"

#include <lz4.h>
#include <sys/mman.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace ptarmigan::runtime {
namespace {

// Container: u32 magic, u16 version, u16 header size, u64 size of all entries; then the entries,
// one after another. Entry, by offset: 0x00 u16 kind; 0x04 u32 header size; 0x08 u64 payload size,
// padded to 8; 0x10 u32 compressed size or 0; 0x14 u32 offset of {u32 offset, u32 length} of the
// ptxas options; 0x18, 0x1a u16 minor, major version; 0x1c u32 architecture; 0x20, 0x24 u32 offset,
// length of the source name; 0x28 u64 flags; 0x38 u64 uncompressed size or 0.
constexpr std::uint32_t wrapper_magic = 0x466243B1;
constexpr std::uint32_t container_magic = 0xBA55ED50;
constexpr std::uint64_t container_header_size = 16;
constexpr std::uint64_t entry_header_size = 64;
constexpr std::uint64_t size_limit = 1ull << 31; // of one container, when the caller knows no size
constexpr std::uint64_t text_limit = 1ull << 29; // of one PTX text; the largest known is 40 MB
constexpr unsigned input_limit = 1u << 16;       // relocatable inputs of one wrapper

constexpr std::uint16_t kind_ptx = 1, kind_cubin = 2, kind_lto = 8;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;
constexpr std::uint64_t flag_arch_specific = 0x100000, flag_family = 0x200000;

/// Unaligned little-endian read; the caller has checked the extent.
template <typename T> T load(const std::uint8_t* bytes, std::uint64_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

struct Wrapper {
    std::uint32_t magic, version;
    const void* container;
    const void* const* inputs;
};
static_assert(sizeof(Wrapper) == 24);

/// First byte of the text proper: PTX may open with blanks.
bool looks_like_text(const std::uint8_t* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size && i < 4096; ++i) {
        std::uint8_t c = bytes[i];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f') continue;
        return c >= 0x20 && c < 0x7f;
    }
    return false;
}

std::string unpack_entry(const PtxEntry& entry);

/// Reads one entry's header at `offset` of [0, end); returns its full size or 0 when it is unsound.
std::uint64_t read_entry(const std::uint8_t* bytes, std::uint64_t offset, std::uint64_t end,
                         ContainerContents& contents) {
    if (end - offset < entry_header_size) return 0;
    const std::uint8_t* header = bytes + offset;
    auto kind = load<std::uint16_t>(header, 0);
    auto header_size = load<std::uint32_t>(header, 4);
    auto payload_size = load<std::uint64_t>(header, 8);
    auto compressed_size = load<std::uint32_t>(header, 0x10);
    auto options_at = load<std::uint32_t>(header, 0x14);
    std::uint64_t room = end - offset;
    if (header_size < entry_header_size || header_size > room || payload_size > room - header_size) return 0;
    if (compressed_size > payload_size) return 0;
    unsigned architecture = load<std::uint32_t>(header, 0x1c);
    if (kind == kind_cubin) contents.sass.push_back(architecture);
    if (kind == kind_lto) ++contents.lto_entries;
    if (kind != kind_ptx && kind != kind_cubin) return header_size + payload_size;

    PtxEntry entry;
    entry.architecture = architecture;
    entry.isa_minor = load<std::uint16_t>(header, 0x18);
    entry.isa_major = load<std::uint16_t>(header, 0x1a);
    entry.flags = load<std::uint64_t>(header, 0x28);
    entry.variant = entry.flags & flag_arch_specific ? 'a' : entry.flags & flag_family ? 'f' : 0;
    entry.payload = header + header_size;
    entry.stored_size = compressed_size ? compressed_size : payload_size;
    entry.text_size = load<std::uint64_t>(header, 0x38);
    auto name_at = load<std::uint32_t>(header, 0x20), name_size = load<std::uint32_t>(header, 0x24);
    if (name_at >= entry_header_size && name_at <= header_size && name_size <= header_size - name_at)
        entry.source_name.assign(reinterpret_cast<const char*>(header + name_at), name_size);
    if (options_at >= entry_header_size && options_at <= header_size && header_size - options_at >= 8) {
        auto text_at = load<std::uint32_t>(header, options_at);
        auto text_size = load<std::uint32_t>(header, options_at + 4);
        if (text_at <= header_size && text_size <= header_size - text_at)
            entry.options.assign(reinterpret_cast<const char*>(header + text_at), text_size);
    }
    (kind == kind_ptx ? contents.ptx : contents.cubins).push_back(std::move(entry));
    return header_size + payload_size;
}

/// Order of preference among eligible entries: the highest architecture, then the most specific
/// variant.
bool better(const PtxEntry& a, const PtxEntry& b) {
    auto rank = [](char variant) { return variant == 'a' ? 2 : variant == 'f' ? 1 : 0; };
    if (a.architecture != b.architecture) return a.architecture > b.architecture;
    return rank(a.variant) > rank(b.variant);
}

bool eligible(const PtxEntry& entry, unsigned device) {
    if (entry.variant == 'a') return entry.architecture == device;
    if (entry.variant == 'f') return entry.architecture / 10 == device / 10 && entry.architecture <= device;
    return entry.architecture <= device;
}

/// Whether a GPU would run one of these cubins: they serve later devices of the same major number.
bool runs_as_sass(const std::vector<unsigned>& sass, unsigned device) {
    return std::any_of(sass.begin(), sass.end(), [&](unsigned architecture) {
        return architecture / 10 == device / 10 && architecture <= device;
    });
}

/// Whether the device takes machine code of this architecture.
bool takes_sass(unsigned architecture, const ImageOptions& options) {
    return architecture <= options.device_architecture &&
           (!options.own_generation_only || architecture / 10 == options.device_architecture / 10);
}

/// The machine code that can be lifted for the device, the highest architecture first.
std::vector<const PtxEntry*> liftable_cubins(const std::vector<PtxEntry>& entries, const ImageOptions& options) {
    std::vector<const PtxEntry*> cubins;
    for (const PtxEntry& entry : entries)
        if (sass::lifts_architecture(entry.architecture) && eligible(entry, options.device_architecture) &&
            takes_sass(entry.architecture, options))
            cubins.push_back(&entry);
    std::stable_sort(cubins.begin(), cubins.end(), [](const PtxEntry* a, const PtxEntry* b) { return better(*a, *b); });
    return cubins;
}

/// Whether a GPU would pass over this PTX for machine code: that of the device's own major number, for a higher
/// architecture or with more of its features. The PTX was compiled for less (`__CUDA_ARCH__`), so its kernels may be
/// others, or empty.
bool is_passed_over(const PtxEntry& ptx, const std::vector<PtxEntry>& cubins, const ImageOptions& options) {
    if (!eligible(ptx, options.device_architecture)) return false;
    return std::any_of(cubins.begin(), cubins.end(), [&](const PtxEntry& cubin) {
        return sass::lifts_architecture(cubin.architecture) && eligible(cubin, options.device_architecture) &&
               cubin.architecture / 10 == options.device_architecture / 10 && better(cubin, ptx);
    });
}

/// The entry to compile, or null. The last resort is the lowest of the newer ones, plain ones first: code for exactly
/// one architecture is likely to use what only that has.
const PtxEntry* choose(const std::vector<PtxEntry>& entries, const std::vector<unsigned>& sass,
                       const ImageOptions& options) {
    const PtxEntry* best = nullptr;
    for (const PtxEntry& entry : entries)
        if (eligible(entry, options.device_architecture) && (!best || better(entry, *best))) best = &entry;
    const bool replaces_sass = options.replaces_sass && runs_as_sass(sass, options.device_architecture);
    if (best || !(options.accept_newer || replaces_sass)) return best;
    const auto order = [](const PtxEntry& entry) { return std::pair(entry.variant != 0, entry.architecture); };
    for (const PtxEntry& entry : entries)
        if (entry.architecture >= options.device_architecture && (!best || order(entry) < order(*best))) best = &entry;
    return best;
}

std::string architectures(const ContainerContents& contents) {
    std::string text;
    auto add = [&](const std::string& item) {
        if (text.find(item) == std::string::npos) text += (text.empty() ? "" : ", ") + item;
    };
    for (unsigned sm : contents.sass) add("SASS sm_" + std::to_string(sm));
    for (const PtxEntry& entry : contents.ptx)
        add("PTX compute_" + std::to_string(entry.architecture) +
            (entry.variant ? std::string(1, entry.variant) : std::string()));
    if (contents.lto_entries) add("LTO code");
    return text.empty() ? "nothing" : text;
}

ImagePtx no_ptx(const ContainerContents& contents, unsigned device) {
    ImagePtx image;
    image.result = ImageResult::no_binary_for_device;
    std::string arch = std::to_string(device);
    image.message = "the fat binary has no PTX that suits sm_" + arch + " (it holds " + architectures(contents) + ")";
    image.advice = "build it with nvcc -gencode arch=compute_" + arch + ",code=compute_" + arch;
    bool newer = std::any_of(contents.ptx.begin(), contents.ptx.end(),
                             [&](const PtxEntry& e) { return e.architecture > device; });
    if (newer) image.advice += ", or set PTARMIGAN_ACCEPT_NEWER_PTX=1 or PTARMIGAN_CC";
    return image;
}

ImagePtx invalid(std::string message) {
    ImagePtx image;
    image.result = ImageResult::invalid_image;
    image.message = std::move(message);
    return image;
}

ImagePtx unpack_chosen(const PtxEntry& entry, unsigned device) {
    ImagePtx image;
    image.text = unpack_ptx(entry);
    if (image.text.empty())
        return invalid("the fat binary's PTX entry for sm_" + std::to_string(entry.architecture) + " is damaged");
    image.result = ImageResult::ok;
    image.architecture = entry.architecture;
    image.is_newer = !eligible(entry, device);
    return image;
}

std::shared_ptr<const PackedPtx> keep_packed(const PtxEntry& entry, unsigned device) {
    auto packed = std::make_shared<PackedPtx>();
    packed->entry = entry;
    packed->bytes.assign(reinterpret_cast<const char*>(entry.payload), entry.stored_size);
    packed->entry.payload = reinterpret_cast<const std::uint8_t*>(packed->bytes.data());
    packed->is_newer = !eligible(entry, device);
    return packed;
}

/// Machine code becomes the declarations of what it has.
ImagePtx read_machine_code(std::string cubin, const ImageOptions& options) {
    ImagePtx image;
    std::string error;
    const auto code = sass::MachineCode::read(std::move(cubin), image.architecture, error);
    if (!code) {
        if (image.architecture == 0) return invalid("the cubin is damaged: " + error);
        image.result = ImageResult::no_binary_for_device;
        image.message = "the image is a cubin: " + error;
        image.advice = "hand over PTX instead";
        return image;
    }
    if (!takes_sass(image.architecture, options)) {
        image.result = ImageResult::no_binary_for_device;
        image.message = "the image is a cubin for sm_" + std::to_string(image.architecture) +
                        ", and the device is of sm_" + std::to_string(options.device_architecture);
        if (image.architecture < options.device_architecture)
            image.message += ": a device that was asked for takes machine code of its own major number only";
        return image;
    }
    image.result = ImageResult::ok;
    image.text = code->take_declarations();
    image.machine_code = code;
    return image;
}

/// Names of the text's kernels.
std::set<std::string_view> kernels_of(std::string_view text) {
    constexpr std::string_view entry = ".entry ";
    std::set<std::string_view> names;
    for (std::size_t at = text.find(entry); at != text.npos; at = text.find(entry, at)) {
        at += entry.size();
        const std::size_t end = text.find_first_of("( \t\r\n", at);
        if (end == text.npos) break;
        names.insert(text.substr(at, end - at));
    }
    return names;
}

/// Whether `text` has every kernel of `other`.
bool has_all_kernels(std::string_view text, std::string_view other) {
    const std::set<std::string_view> here = kernels_of(text), there = kernels_of(other);
    return std::includes(here.begin(), here.end(), there.begin(), there.end());
}

/// The machine code of the highest architecture of which the variables can be had.
ImagePtx read_best(const std::vector<const PtxEntry*>& cubins, const ImageOptions& options) {
    ImagePtx best;
    for (const PtxEntry* cubin : cubins) {
        ImagePtx image = read_machine_code(unpack_entry(*cubin), options);
        const bool is_read = image.result == ImageResult::ok;
        if (cubin == cubins.front() || is_read) best = std::move(image);
        if (is_read) break;
    }
    return best;
}

ImagePtx read_container(const void* container, std::size_t size, const ImageOptions& options) {
    ContainerContents contents = list_container(container, size);
    if (!contents.sound) return invalid("the fat binary's headers are damaged");
    if (options.lifts) {
        const std::vector<const PtxEntry*> cubins = liftable_cubins(contents.cubins, options);
        const PtxEntry* instead = choose(contents.ptx, contents.sass, options);
        const bool has_ptx = instead != nullptr && eligible(*instead, options.device_architecture);
        const bool prefers_sass =
            options.prefers_sass || (has_ptx && is_passed_over(*instead, contents.cubins, options));
        if (!cubins.empty() && (prefers_sass || !has_ptx)) {
            ImagePtx image = read_best(cubins, options);
            if (instead == nullptr) return image;
            if (image.result == ImageResult::ok) image.ptx_beside = keep_packed(*instead, options.device_architecture);
            if (prefers_sass && image.result == ImageResult::ok) return image;
            // PTX for newer devices, where it has the same kernels: libraries have others in it.
            ImagePtx newer = unpack_chosen(*instead, options.device_architecture);
            if (image.result != ImageResult::ok) return newer;
            return newer.result == ImageResult::ok && has_all_kernels(newer.text, image.text) ? newer : image;
        }
    }
    const PtxEntry* entry = choose(contents.ptx, contents.sass, options);
    if (entry == nullptr) return no_ptx(contents, options.device_architecture);
    ImagePtx image = unpack_chosen(*entry, options.device_architecture);
    image.is_passed_over = is_passed_over(*entry, contents.cubins, options);
    return image;
}

/// A program's list of relocatable inputs ends with null. What was linked of them is machine code, for those without
/// PTX.
ImagePtx read_relocatable(const Wrapper& wrapper, const ImageOptions& options) {
    std::vector<std::pair<const void*, std::size_t>> containers;
    for (unsigned i = 0; wrapper.inputs && wrapper.inputs[i]; ++i) {
        if (i == input_limit) return invalid("the fat binary's list of relocatable inputs has no end");
        containers.emplace_back(wrapper.inputs[i], SIZE_MAX);
    }
    ImagePtx linked;
    const bool has_linked = options.lifts && wrapper.container != nullptr;
    if (has_linked && options.prefers_sass) {
        linked = read_container(wrapper.container, SIZE_MAX, options);
        if (linked.result == ImageResult::ok) return linked;
    }
    ImagePtx units = read_units(containers, options);
    if ((units.result == ImageResult::ok && !units.is_passed_over) || !has_linked) return units;
    linked = read_container(wrapper.container, SIZE_MAX, options);
    return linked.result == ImageResult::ok ? linked : units;
}

} // namespace

ImageKind image_kind(const void* image, std::size_t size) {
    auto bytes = static_cast<const std::uint8_t*>(image);
    if (!image || size == 0) return ImageKind::unknown;
    // Byte by byte, so that a one-character text without a size is not read past its NUL.
    auto starts_with = [&](std::uint32_t magic) {
        for (unsigned i = 0; i < 4; ++i)
            if (i >= size || bytes[i] != ((magic >> (8 * i)) & 0xff)) return false;
        return true;
    };
    if (starts_with(wrapper_magic)) return ImageKind::wrapper;
    if (starts_with(container_magic)) return ImageKind::container;
    if (starts_with(0x464C457F)) return ImageKind::elf;
    return looks_like_text(bytes, size) ? ImageKind::ptx_text : ImageKind::unknown;
}

bool is_cubin(const void* image, std::size_t size) {
    constexpr std::size_t machine_place = 18;
    constexpr std::uint16_t cuda_machine = 190; // EM_CUDA
    std::uint16_t machine = 0;
    if (image_kind(image, size) != ImageKind::elf || size < machine_place + sizeof machine) return false;
    std::memcpy(&machine, static_cast<const char*>(image) + machine_place, sizeof machine);
    return machine == cuda_machine;
}

bool has_suitable_ptx(const ContainerContents& contents, const ImageOptions& options) {
    return choose(contents.ptx, contents.sass, options) != nullptr;
}

std::uint64_t container_extent(const void* container, std::size_t size) {
    auto bytes = static_cast<const std::uint8_t*>(container);
    if (image_kind(container, size) != ImageKind::container || size < container_header_size) return 0;
    auto header_size = load<std::uint16_t>(bytes, 6);
    auto entries_size = load<std::uint64_t>(bytes, 8);
    std::uint64_t extent = std::min<std::uint64_t>(size, size_limit);
    if (header_size < container_header_size || header_size > extent || entries_size > extent - header_size) return 0;
    return header_size + entries_size;
}

ContainerContents list_container(const void* container, std::size_t size) {
    ContainerContents contents;
    auto bytes = static_cast<const std::uint8_t*>(container);
    std::uint64_t end = container_extent(container, size);
    if (end == 0) return contents;
    for (std::uint64_t offset = load<std::uint16_t>(bytes, 6); offset < end;) {
        std::uint64_t entry_size = read_entry(bytes, offset, end, contents);
        if (entry_size == 0) return contents;
        offset += entry_size;
    }
    contents.sound = true;
    return contents;
}

namespace {

std::string unpack_entry(const PtxEntry& entry) {
    std::string text;
    auto source = reinterpret_cast<const char*>(entry.payload);
    if (entry.stored_size == 0 || entry.stored_size > text_limit || entry.text_size > text_limit) return text;
    if (entry.flags & flag_lz4) {
        // 255 is LZ4's largest ratio: a larger claim is damage, and would only cost memory.
        if (entry.text_size == 0 || entry.text_size / 255 > entry.stored_size) return text;
        text.resize(entry.text_size);
        int got = LZ4_decompress_safe(source, text.data(), static_cast<int>(entry.stored_size),
                                      static_cast<int>(text.size()));
        if (got < 0 || static_cast<std::size_t>(got) != text.size()) return {};
    } else if (entry.flags & flag_zstd) {
        if (entry.text_size == 0 || ZSTD_getFrameContentSize(source, entry.stored_size) != entry.text_size) return text;
        text.resize(entry.text_size);
        std::size_t got = ZSTD_decompress(text.data(), text.size(), source, entry.stored_size);
        if (ZSTD_isError(got) || got != text.size()) return {};
    } else {
        text.assign(source, entry.stored_size);
    }
    return text;
}

} // namespace

std::string unpack_ptx(const PtxEntry& entry) {
    std::string text = unpack_entry(entry);
    // Stored texts are padded with NULs to 8 bytes, and a NUL may be part of the packed text.
    if (auto end = text.find('\0'); end != std::string::npos) text.resize(end);
    return text;
}

namespace {

/// In pages of 2 MB if it is long: in small ones 50 MB take 12,000 page faults, a quarter of the time to load such a
/// module.
void copy_text(std::string_view from, std::string& to) {
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    to.reserve(from.size());
    const auto address = reinterpret_cast<std::uintptr_t>(to.data());
    const std::uintptr_t first = (address + huge_page - 1) / huge_page * huge_page;
    const std::uintptr_t last = (address + from.size()) / huge_page * huge_page;
    if (first < last) static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE)); // a hint
    to.assign(from);
}

} // namespace

ImagePtx read_image(const void* image, std::size_t size, const ImageOptions& options) {
    switch (image_kind(image, size)) {
    case ImageKind::ptx_text: {
        ImagePtx result;
        auto text = static_cast<const char*>(image);
        copy_text({text, size == SIZE_MAX ? std::strlen(text) : strnlen(text, size)}, result.text);
        result.result = ImageResult::ok;
        return result;
    }
    case ImageKind::container: return read_container(image, size, options);
    case ImageKind::wrapper: {
        if (size < sizeof(Wrapper)) return invalid("the fat binary's wrapper is cut short");
        Wrapper wrapper;
        std::memcpy(&wrapper, image, sizeof wrapper);
        if (wrapper.version == 1) return read_container(wrapper.container, SIZE_MAX, options);
        if (wrapper.version == 2) return read_relocatable(wrapper, options);
        return invalid("fat binary wrapper version " + std::to_string(wrapper.version) + " is unknown");
    }
    case ImageKind::elf: {
        if (!is_cubin(image, size)) return invalid("the image is an ELF file, but not of a GPU's machine code");
        if (options.lifts) {
            const std::size_t extent = sass::elf_extent(image, std::min<std::size_t>(size, size_limit), is_mapped);
            if (extent != 0) return read_machine_code({static_cast<const char*>(image), extent}, options);
        }
        ImagePtx result;
        result.result = ImageResult::no_binary_for_device;
        result.message = options.lifts ? "the image is a cubin whose headers are damaged"
                                       : "the image is a cubin (SASS machine code), which can't be used here";
        result.advice = "hand over PTX instead";
        return result;
    }
    case ImageKind::unknown: break;
    }
    return invalid("the image is neither PTX text, a fat binary nor a cubin");
}

/// libcudadevrt's own PTX, which ends in calls that only NVIDIA's driver answers.
static bool is_device_library(std::string_view text) {
    return text.find("__cuda_syscall_") != text.npos;
}

/// Relocatable device code (nvcc -rdc=true): the linked container has SASS only, PTX is in the
/// inputs, one per translation unit. Inputs without suitable PTX drop out, and so does libcudadevrt, whose PTX is for
/// sm_121 and whose functions are the runtime's here.
ImagePtx read_units(const std::vector<std::pair<const void*, std::size_t>>& containers, const ImageOptions& options) {
    ContainerContents all;
    ImagePtx image;
    for (std::size_t i = 0; i < containers.size(); ++i) {
        ContainerContents input = list_container(containers[i].first, containers[i].second);
        if (!input.sound) return invalid("the headers of relocatable input " + std::to_string(i) + " are damaged");
        all.ptx.insert(all.ptx.end(), input.ptx.begin(), input.ptx.end());
        all.sass.insert(all.sass.end(), input.sass.begin(), input.sass.end());
        all.lto_entries += input.lto_entries;
        const PtxEntry* entry = choose(input.ptx, input.sass, options);
        if (!entry) {
            ++image.units_without_ptx;
            continue;
        }
        ImagePtx unit = unpack_chosen(*entry, options.device_architecture);
        if (unit.result != ImageResult::ok) return unit;
        if (unit.is_newer && !options.accept_newer && is_device_library(unit.text)) {
            ++image.units_without_ptx;
            continue;
        }
        image.architecture = std::max(image.architecture, unit.architecture);
        image.is_newer |= unit.is_newer;
        image.is_passed_over |= is_passed_over(*entry, input.cubins, options);
        std::string name = entry->source_name;
        if (name.empty()) name = "input " + std::to_string(i + 1);
        image.units.push_back({std::move(unit.text), std::move(name)});
    }
    if (image.units.empty()) return no_ptx(all, options.device_architecture);
    if (image.units.size() == 1) {
        image.text = std::move(image.units.front().text);
        image.units.clear();
    }
    image.result = ImageResult::ok;
    return image;
}

std::string describe_failure(const ImagePtx& image) {
    return image.advice.empty() ? image.message : image.message + "; " + image.advice;
}

int image_result_code(ImageResult result) {
    switch (result) {
    case ImageResult::ok: return 0;
    case ImageResult::no_binary_for_device: return 209;
    case ImageResult::invalid_image: return 200;
    }
    return 999;
}

} // namespace ptarmigan::runtime
