// SPDX-License-Identifier: Apache-2.0
// Layout: magic, version, file size, checksum of everything behind it, then the key, and for kernels properties and
// image as little-endian fields, each array behind its count; for notes one array.
#include "runtime/module/kernel_file.h"

#include "translator/kernel_abi.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace ptarmigan::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are stored as they are in memory");

using Magic = std::uint8_t[8];
constexpr Magic kernel_magic = {'P', 'T', 'M', 'K', 'E', 'R', 'N', '\n'};
constexpr Magic note_magic = {'P', 'T', 'M', 'N', 'O', 'T', 'E', '\n'};
constexpr std::uint32_t file_version = 12;
constexpr std::uint32_t image_base_import = 0xffffffffu;

struct Header {
    std::uint8_t magic[8];
    std::uint32_t version;
    std::uint32_t reserved;
    std::uint64_t size;
    std::uint64_t checksum_low, checksum_high;
};
static_assert(sizeof(Header) == 40);

XXH128_hash_t checksum(std::span<const std::uint8_t> body) {
    return XXH3_128bits(body.data(), body.size());
}

class Writer {
public:
    template <typename T> void value(const T& field) {
        static_assert(std::is_trivially_copyable_v<T>);
        append(&field, sizeof(T));
    }
    void array(const void* data, std::size_t size) {
        value<std::uint64_t>(size);
        append(data, size);
    }
    std::vector<std::uint8_t> bytes;

private:
    void append(const void* data, std::size_t size) {
        const std::size_t at = bytes.size();
        bytes.resize(at + size);
        if (size != 0) std::memcpy(bytes.data() + at, data, size);
    }
};

/// Reads fields in order; after the first one that does not fit, ok() is false and everything reads as zero.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

    bool ok() const { return ok_; }
    bool at_end() const { return rest_.empty(); }
    template <typename T> T value() {
        T field{};
        const auto bytes = take(sizeof(T));
        if (ok_) std::memcpy(&field, bytes.data(), sizeof(T));
        return field;
    }
    bool flag() {
        const auto byte = value<std::uint8_t>();
        if (byte > 1) ok_ = false;
        return byte == 1;
    }
    std::span<const std::uint8_t> array() { return take(value<std::uint64_t>()); }
    /// A count of items of `item_size` bytes that the rest of the file can hold.
    std::size_t count(std::size_t item_size) {
        const auto items = value<std::uint64_t>();
        if (items > rest_.size() / item_size) ok_ = false;
        return ok_ ? static_cast<std::size_t>(items) : 0;
    }

private:
    std::span<const std::uint8_t> take(std::uint64_t size) {
        if (!ok_ || size > rest_.size()) {
            ok_ = false;
            return {};
        }
        const auto taken = rest_.first(static_cast<std::size_t>(size));
        rest_ = rest_.subspan(static_cast<std::size_t>(size));
        return taken;
    }

    std::span<const std::uint8_t> rest_;
    bool ok_ = true;
};

// One place names the fields of KernelProperties, for writing and reading alike.
template <typename Properties, typename Flag, typename Number>
void visit_properties(Properties& properties, Flag&& flag, Number&& number) {
    flag(properties.uses_fibers);
    flag(properties.gives_turns);
    number(properties.lane_width);
    number(properties.step_count);
    number(properties.frame_size);
    number(properties.cta_frame_size);
    number(properties.static_shared);
    number(properties.reserved_shared);
    number(properties.local_bytes);
    number(properties.interleaved_bytes);
    number(properties.streamed_bytes);
    flag(properties.unbounded_stack);
    number(properties.stack_scale);
    flag(properties.spins);
    flag(properties.could_spin);
    flag(properties.continues_in_y);
    number(properties.ctas_in_row);
}

/// Room for the header, then the key.
Writer begin_file(std::string_view key) {
    Writer writer;
    writer.value(Header{});
    writer.array(key.data(), key.size());
    return writer;
}

std::vector<std::uint8_t> finish_file(Writer writer, const Magic& magic) {
    Header header{};
    std::memcpy(header.magic, magic, sizeof magic);
    header.version = file_version;
    header.size = writer.bytes.size();
    const XXH128_hash_t sum = checksum(std::span(writer.bytes).subspan(sizeof(Header)));
    header.checksum_low = sum.low64;
    header.checksum_high = sum.high64;
    std::memcpy(writer.bytes.data(), &header, sizeof header);
    return std::move(writer.bytes);
}

/// The fields of a whole file of this version, the key first; nothing for others.
std::optional<Reader> open_file(std::span<const std::uint8_t> bytes, const Magic& magic) {
    Header header;
    if (bytes.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto body = bytes.subspan(sizeof header);
    if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.version != file_version || header.reserved != 0 ||
        header.size != bytes.size())
        return std::nullopt;
    const XXH128_hash_t sum = checksum(body);
    if (sum.low64 != header.checksum_low || sum.high64 != header.checksum_high) return std::nullopt;
    return Reader(body);
}

/// What stands behind the key, or nothing unless the file is whole, of this kind and version, and for this key.
std::optional<Reader> open_file(std::span<const std::uint8_t> bytes, const Magic& magic, std::string_view key) {
    std::optional<Reader> reader = open_file(bytes, magic);
    if (!reader) return std::nullopt;
    const auto stored_key = reader->array();
    if (!reader->ok() || stored_key.size() != key.size() || std::memcmp(stored_key.data(), key.data(), key.size()) != 0)
        return std::nullopt;
    return reader;
}

bool consistent(const translator::CompiledKernel& kernel) {
    const translator::KernelImage& image = kernel.image;
    const translator::KernelProperties& properties = kernel.properties;
    if (image.code_size == 0 || image.code_size > image.bytes.size()) return false;
    if (image.entry_offset >= image.code_size) return false;
    for (const auto& relocation : image.relocations) {
        if (relocation.offset > image.bytes.size() || image.bytes.size() - relocation.offset < 8) return false;
        const bool internal = relocation.import == image_base_import;
        if (internal && relocation.addend > image.bytes.size()) return false;
        if (!internal && relocation.import >= std::size(abi::import_names)) return false;
    }
    std::uint32_t previous = 0;
    for (const translator::LineEntry& entry : image.lines) {
        if (entry.offset < previous || entry.offset > image.code_size) return false;
        if (entry.access > properties.accesses.size()) return false;
        previous = entry.offset;
    }
    for (const translator::AccessForm& form : properties.accesses)
        if (form.kind > translator::AccessForm::Kind::noted) return false;
    if (!translator::is_consistent(properties.work) || !translator::is_consistent(properties.addresses)) return false;
    return properties.lane_width >= 1 && properties.lane_width <= abi::warp_size && properties.step_count >= 1 &&
           properties.step_count <= 1024 && properties.cta_frame_size % 64 == 0;
}

constexpr std::size_t number_size = 19;

void write_number(Writer& writer, const translator::LaunchNumber& number) {
    writer.value(number.kind);
    writer.value(number.bits);
    writer.value<std::uint8_t>(number.is_signed);
    writer.value(number.a);
    writer.value(number.b);
    writer.value(number.value);
}

translator::LaunchNumber read_number(Reader& reader) {
    translator::LaunchNumber number;
    number.kind = reader.value<translator::LaunchNumber::Kind>();
    number.bits = reader.value<std::uint8_t>();
    number.is_signed = reader.flag();
    number.a = reader.value<std::uint32_t>();
    number.b = reader.value<std::uint32_t>();
    number.value = reader.value<std::int64_t>();
    return number;
}

void write_addresses(Writer& writer, const translator::AddressProgram& program) {
    writer.value(program.places);
    writer.value<std::uint64_t>(program.steps.size());
    for (const translator::AddressProgram::Step& step : program.steps) {
        writer.value(step.kind);
        writer.value(step.result);
        write_number(writer, step.number);
    }
}

void read_addresses(Reader& reader, translator::AddressProgram& program) {
    program.places = reader.value<std::uint32_t>();
    program.steps.resize(reader.count(number_size + 5));
    for (translator::AddressProgram::Step& step : program.steps) {
        step.kind = reader.value<translator::AddressProgram::Step::Kind>();
        step.result = reader.value<std::uint32_t>();
        step.number = read_number(reader);
    }
}

void write_work(Writer& writer, const translator::LaunchWork& work) {
    writer.value<std::uint64_t>(work.numbers.size());
    for (const translator::LaunchNumber& number : work.numbers) write_number(writer, number);
    writer.value<std::uint64_t>(work.loops.size());
    for (const translator::LaunchLoop& loop : work.loops) writer.value(loop);
}

void read_work(Reader& reader, translator::LaunchWork& work) {
    work.numbers.resize(reader.count(number_size));
    for (translator::LaunchNumber& number : work.numbers) number = read_number(reader);
    work.loops.resize(reader.count(sizeof(translator::LaunchLoop)));
    for (translator::LaunchLoop& loop : work.loops) loop = reader.value<translator::LaunchLoop>();
}

} // namespace

std::vector<std::uint8_t> write_kernel_file(std::string_view key, const translator::CompiledKernel& kernel) {
    Writer writer = begin_file(key);
    visit_properties(
        kernel.properties, [&](bool flag) { writer.value<std::uint8_t>(flag); },
        [&](std::uint32_t number) { writer.value(number); });
    writer.value<std::uint32_t>(kernel.form.lane_width);
    writer.value(kernel.form.divergence);
    writer.value(kernel.form.barriers);
    writer.value(kernel.form.optimization);
    const translator::KernelImage& image = kernel.image;
    writer.value<std::uint64_t>(kernel.properties.alignment_demands.size());
    for (const translator::AlignmentDemand& demand : kernel.properties.alignment_demands) {
        writer.value(demand.offset);
        writer.value(demand.mask);
        writer.value(demand.residue);
    }
    writer.value(image.entry_offset);
    writer.value(image.code_size);
    writer.value(image.stack_bytes);
    writer.value(image.largest_frame);
    writer.array(image.bytes.data(), image.bytes.size());
    writer.value<std::uint64_t>(image.relocations.size());
    for (const auto& relocation : image.relocations) {
        writer.value(relocation.offset);
        writer.value(relocation.import);
        writer.value(relocation.addend);
    }
    writer.value<std::uint64_t>(image.lines.size());
    for (const translator::LineEntry& entry : image.lines) {
        writer.value(entry.offset);
        writer.value(entry.line);
        writer.value(entry.access);
    }
    writer.value<std::uint64_t>(kernel.properties.accesses.size());
    for (const translator::AccessForm& form : kernel.properties.accesses) {
        writer.value(form.kind);
        writer.value(form.element_bytes);
        writer.array(form.lanes.data(), form.lanes.size());
    }
    write_work(writer, kernel.properties.work);
    write_addresses(writer, kernel.properties.addresses);
    return finish_file(std::move(writer), kernel_magic);
}

std::optional<translator::CompiledKernel> read_kernel_file(std::span<const std::uint8_t> bytes, std::string_view key) {
    std::optional<Reader> opened = open_file(bytes, kernel_magic, key);
    if (!opened) return std::nullopt;
    Reader& reader = *opened;
    translator::CompiledKernel kernel;
    visit_properties(
        kernel.properties, [&](bool& flag) { flag = reader.flag(); },
        [&](std::uint32_t& number) { number = reader.value<std::uint32_t>(); });
    kernel.form.lane_width = reader.value<std::uint32_t>();
    kernel.form.divergence = reader.value<translator::DivergenceForm>();
    kernel.form.barriers = reader.value<translator::BarrierForm>();
    kernel.form.optimization = reader.value<translator::Optimization>();
    translator::KernelImage& image = kernel.image;
    kernel.properties.alignment_demands.resize(reader.count(6));
    for (translator::AlignmentDemand& demand : kernel.properties.alignment_demands) {
        demand.offset = reader.value<std::uint32_t>();
        demand.mask = reader.value<std::uint8_t>();
        demand.residue = reader.value<std::uint8_t>();
    }
    image.entry_offset = reader.value<std::uint32_t>();
    image.code_size = reader.value<std::uint32_t>();
    image.stack_bytes = reader.value<std::uint32_t>();
    image.largest_frame = reader.value<std::uint32_t>();
    const auto code = reader.array();
    image.bytes.assign(code.begin(), code.end());
    image.relocations.resize(reader.count(16));
    for (auto& relocation : image.relocations) {
        relocation.offset = reader.value<std::uint32_t>();
        relocation.import = reader.value<std::uint32_t>();
        relocation.addend = reader.value<std::uint64_t>();
    }
    image.lines.resize(reader.count(10));
    for (translator::LineEntry& entry : image.lines) {
        entry.offset = reader.value<std::uint32_t>();
        entry.line = reader.value<std::uint32_t>();
        entry.access = reader.value<std::uint16_t>();
    }
    kernel.properties.accesses.resize(reader.count(10));
    for (translator::AccessForm& form : kernel.properties.accesses) {
        form.kind = reader.value<translator::AccessForm::Kind>();
        form.element_bytes = reader.value<std::uint8_t>();
        const auto lanes = reader.array();
        form.lanes.assign(lanes.begin(), lanes.end());
    }
    read_work(reader, kernel.properties.work);
    read_addresses(reader, kernel.properties.addresses);
    if (!reader.ok() || !reader.at_end() || !consistent(kernel)) return std::nullopt;
    return kernel;
}

std::optional<std::string> stored_key(std::span<const std::uint8_t> bytes) {
    std::optional<Reader> reader = open_file(bytes, kernel_magic);
    if (!reader) reader = open_file(bytes, note_magic);
    if (!reader) return std::nullopt;
    const auto key = reader->array();
    if (!reader->ok()) return std::nullopt;
    return std::string(key.begin(), key.end());
}

std::vector<std::uint8_t> write_note_file(std::string_view key, std::span<const std::uint8_t> note) {
    Writer writer = begin_file(key);
    writer.array(note.data(), note.size());
    return finish_file(std::move(writer), note_magic);
}

std::optional<std::vector<std::uint8_t>> read_note_file(std::span<const std::uint8_t> bytes, std::string_view key) {
    std::optional<Reader> reader = open_file(bytes, note_magic, key);
    if (!reader) return std::nullopt;
    const auto note = reader->array();
    if (!reader->ok() || !reader->at_end()) return std::nullopt;
    return std::vector<std::uint8_t>(note.begin(), note.end());
}

} // namespace ptarmigan::runtime
